// The plan of each kernel on a GPU: its passes and how many groups each needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernel_id.h"

namespace millrace {

enum class GpuShape : uint8_t {
  PerThread,  // ceil(threads / items_per_group) groups
  PerGroup,   // one group per thread of the launch
  Once,       // one group
};

/// One compute entry point of a kernel's plan.
struct GpuPass {
  KernelId kernel;
  const char* entry_point;
  GpuShape shape;
  uint32_t items_per_group;
  uint32_t pass = 0;  // its number in the kernel's plan, from 0, which the argument block has
};

namespace detail {
inline constexpr auto kGpuPasses = [] {
  auto passes = std::to_array<GpuPass>({
#define MILLRACE_GPU_PASS(kernel, entry, shape, items) \
  {KernelId::kernel, #entry, GpuShape::shape, items},
#include "kernels/gpu_table.inc"
#undef MILLRACE_GPU_PASS
  });
  for (size_t i = 1; i < passes.size(); ++i) {
    if (passes[i].kernel == passes[i - 1].kernel) passes[i].pass = passes[i - 1].pass + 1;
  }
  return passes;
}();
}  // namespace detail

/// The passes of `kernel` in order; none where it has no GPU code.
inline std::span<const GpuPass> gpu_passes(KernelId kernel) {
  const std::span<const GpuPass> all(detail::kGpuPasses);
  size_t begin = 0;
  while (begin < all.size() && all[begin].kernel != kernel) ++begin;
  size_t end = begin;
  while (end < all.size() && all[end].kernel == kernel) ++end;
  return all.subspan(begin, end - begin);
}

/// Whether every kernel of the table has a plan.
inline bool gpu_plan_is_complete() {
  for (size_t i = 0; i < static_cast<size_t>(KernelId::kCount); ++i) {
    if (gpu_passes(static_cast<KernelId>(i)).empty()) return false;
  }
  return true;
}

/// Device memory that a launch over `threads` with the parameter block `params` needs beside its
/// bindings, or 0.
uint64_t gpu_scratch_bytes(KernelId kernel, uint64_t threads, std::span<const std::byte> params);

/// Whether a launch with the parameter block `params` has no use for `pass` (a digit that its sort
/// does not have).
bool gpu_skips_pass(const GpuPass& pass, std::span<const std::byte> params);

}  // namespace millrace
