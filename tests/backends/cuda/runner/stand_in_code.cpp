// Entry points without code, for the fake CUDA driver in builds that have no compiler for real
// ones.
#include "kernels/gpu_code.h"

namespace millrace {
namespace {

constexpr std::byte kNoCode[1] = {};
constexpr GpuEntry kEntries[] = {
#define MILLRACE_GPU_PASS(kernel, entry, shape, items) {#entry, 256, {}, kNoCode},
#include "kernels/gpu_table.inc"
#undef MILLRACE_GPU_PASS
};

}  // namespace

std::span<const GpuEntry> gpu_entries() { return kEntries; }

}  // namespace millrace
