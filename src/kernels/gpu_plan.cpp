// Scratch memory of GPU plans.
#include "kernels/gpu_plan.h"

#include <algorithm>
#include <bit>

#include "kernels/splat_params.h"
#include "kernels/tensor_params.h"

namespace millrace {
namespace {

constexpr uint64_t kScanRows = 4096;   // of scan_tiles
constexpr uint64_t kSortItems = 4096;  // of a block of a radix sort
constexpr uint32_t kPassesPerDigit = 3;
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
    case KernelId::radix_sort_pairs:  // counts and totals of a digit
      return kDigits * (divide_up(params_as<RadixSortParams>(params).n, kSortItems) + 1) *
             sizeof(uint32_t);
    case KernelId::sort_instances: {  // slots, tiles twice, counts and totals of a digit
      const uint64_t capacity = params_as<FrameParams>(params).capacity;
      return (3 * capacity + kDigits * (divide_up(capacity, kSortItems) + 1)) * sizeof(uint32_t);
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

bool gpu_skips_pass(const GpuPass& pass, std::span<const std::byte> params) {
  uint64_t n_bits = 0;
  if (pass.kernel == KernelId::radix_sort_pairs) {
    const auto& sort = params_as<RadixSortParams>(params);
    n_bits = sort.end_bit - sort.begin_bit;
  } else if (pass.kernel == KernelId::sort_instances) {
    const auto& frame = params_as<FrameParams>(params);
    n_bits = std::bit_width(uint64_t{frame.tiles_x} * frame.tiles_y - 1);
    // The last pass finds where tiles begin.
    if (pass.pass + 1 == gpu_passes(pass.kernel).size()) return false;
  } else {
    return false;
  }
  return pass.pass / kPassesPerDigit >= std::max<uint64_t>(divide_up(n_bits, 8), 1);
}

}  // namespace millrace
