// Runs the CPU kernels in place of GPU code on the fake CUDA driver, in every binary that links
// this.
#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "backends/cuda/fake/fake_cuda.h"
#include "base/result.h"
#include "device/argument_block.h"
#include "kernels/gpu_plan.h"
#include "kernels/kernel.h"

namespace millrace::cuda::fake {
namespace {

constexpr kernels::CpuKernel kKernels[] = {
#define MILLRACE_KERNEL(name, params, access) &kernels::name,
#include "kernels/table.inc"
#undef MILLRACE_KERNEL
};

/// The kernel that has `entry` as its pass number `pass`, or kCount.
KernelId kernel_of(std::string_view entry, uint32_t pass) {
  for (size_t i = 0; i < static_cast<size_t>(KernelId::kCount); ++i) {
    for (const GpuPass& row : gpu_passes(static_cast<KernelId>(i))) {
      if (row.entry_point == entry && row.pass == pass) return row.kernel;
    }
  }
  return KernelId::kCount;
}

/// Whether no pass of `kernel` after number `pass` is issued for `params`.
bool is_last(KernelId kernel, uint32_t pass, std::span<const std::byte> params) {
  return std::ranges::none_of(gpu_passes(kernel), [&](const GpuPass& row) {
    return row.pass > pass && !gpu_skips_pass(row, params);
  });
}

/// A Runner: the last pass of a kernel's plan runs its CPU twin, the others nothing.
Status run_cpu_kernel(const char* entry, const std::byte* arguments, size_t bytes,
                      uint32_t groups) {
  ArgumentBlock::Head head;
  std::memcpy(&head, arguments, sizeof(head));
  if (head.groups != groups) return Status::InvalidValue;
  const KernelId kernel = kernel_of(entry, head.pass);
  if (kernel == KernelId::kCount) return Status::InvalidValue;
  const size_t params_bytes = kernel_row(kernel).params_bytes;
  if (!is_last(kernel, head.pass, {arguments + bytes - params_bytes, params_bytes})) {
    return Status::Ok;
  }
  const size_t n_bindings = (bytes - sizeof(head) - params_bytes) / sizeof(uint64_t);
  std::vector<std::byte*> buffers(n_bindings);
  std::memcpy(buffers.data(), arguments + sizeof(head), n_bindings * sizeof(uint64_t));
  // Argument blocks carry no sizes; what lies behind an address in its block bounds them.
  std::vector<uint64_t> sizes(n_bindings);
  for (size_t i = 0; i < n_bindings; ++i) {
    sizes[i] = fake_cuda()->bytes_behind(reinterpret_cast<uint64_t>(buffers[i]));
  }
  alignas(16) std::byte params[ArgumentBlock::kMaxParamsBytes];
  std::memcpy(params, arguments + bytes - params_bytes, params_bytes);
  uint64_t threads = head.threads;
  if (head.count != 0) {
    threads = std::min<uint64_t>(threads, *reinterpret_cast<const uint32_t*>(head.count));
  }
  if (threads == 0) return Status::Ok;
  try {
    kKernels[static_cast<size_t>(kernel)](
        {.threads = threads, .params = params, .buffers = buffers, .bytes = sizes});
  } catch (const Exception&) {
    return Status::IllegalAddress;
  }
  return Status::Ok;
}

[[maybe_unused]] const bool kIsRunner = [] {
  FakeCuda* const fake = fake_cuda();
  if (fake != nullptr) fake->set_runner(&run_cpu_kernel);
  return fake != nullptr;
}();

}  // namespace
}  // namespace millrace::cuda::fake
