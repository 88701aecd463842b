// Scratch memory of GPU plans.
#include "kernels/gpu_plan.h"

#include "kernels/splat_params.h"
#include "kernels/tensor_params.h"

namespace millrace {
namespace {

constexpr uint64_t kScanRows = 4096;  // of scan_tiles
constexpr uint64_t kSortSlots = 4096;  // of sort_instances
constexpr uint64_t kDigits = 256;
constexpr uint64_t kLossTile = 16;
constexpr uint64_t kWeightRows = 1024;  // of mcmc_weights
constexpr uint64_t kBoxRows = 4096;     // of morton_keys

uint64_t divide_up(uint64_t n, uint64_t by) { return (n + by - 1) / by; }

template <class Params>
const Params& params_as(std::span<const std::byte> bytes) {
  return *reinterpret_cast<const Params*>(bytes.data());
}

}  // namespace

uint64_t gpu_scratch_bytes(KernelId kernel, uint64_t threads, std::span<const std::byte> params) {
  switch (kernel) {
    case KernelId::scan_tiles:  // instances and visible rows of each block
      return divide_up(threads, kScanRows) * 2 * sizeof(uint32_t);
    case KernelId::sort_instances: {  // slots, tiles twice, counts and totals of a digit
      const uint64_t capacity = params_as<FrameParams>(params).capacity;
      return (3 * capacity + kDigits * (divide_up(capacity, kSortSlots) + 1)) * sizeof(uint32_t);
    }
    case KernelId::photometric_forward: {  // three sums of each tile and channel
      const auto& loss = params_as<LossParams>(params);
      return 3 * kLossSums * sizeof(float) * divide_up(loss.width, kLossTile) *
             divide_up(loss.height, kLossTile);
    }
    case KernelId::mcmc_weights:  // 64 bits of weight, dead rows and padding of each block
      return divide_up(threads, kWeightRows) * 4 * sizeof(uint32_t);
    case KernelId::morton_keys:  // the box of all rows, and of each block
      return (1 + divide_up(threads, kBoxRows)) * 6 * sizeof(float);
    default:
      return 0;
  }
}

}  // namespace millrace
