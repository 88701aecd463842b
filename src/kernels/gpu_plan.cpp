// Scratch memory of GPU plans.
#include "kernels/gpu_plan.h"

#include <algorithm>
#include <bit>

#include "kernels/splat_params.h"
#include "kernels/tensor_params.h"

namespace millrace {
namespace {

constexpr uint64_t kScanRows = 4096;   // of scan_tiles
constexpr uint64_t kSortItems = 2048;  // of a block of a radix sort
constexpr uint32_t kPassesPerDigit = 3;
constexpr uint64_t kDigits = 256;
constexpr uint64_t kLossTileWidth = 32, kLossTileHeight = 16;
constexpr uint64_t kPixelBlock = 1024;  // of a sum over pixels
constexpr uint64_t kWeightRows = 1024;  // of mcmc_weights, and of mrnf's kernels
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
      return 3 * kLossSums * sizeof(float) * divide_up(loss.width, kLossTileWidth) *
             divide_up(loss.height, kLossTileHeight);
    }
    case KernelId::error_map:  // the sum of all pixels, and of each block
    case KernelId::opacity_penalty:
      return (1 + divide_up(threads, kPixelBlock)) * sizeof(float);
    case KernelId::pixel_weights:  // two sums of each block
      return 2 * divide_up(threads, kPixelBlock) * sizeof(float);
    case KernelId::ridge_map:    // the sum of all pixels, and of each tile
    case KernelId::edge_loss: {  // two sums of each tile
      const auto& loss = params_as<LossParams>(params);
      return 2 * sizeof(float) *
             (1 + divide_up(loss.width, kTileSize) * divide_up(loss.height, kTileSize));
    }
    case KernelId::mcmc_weights:  // 64 bits of weight, dead rows and padding of each block
      return divide_up(threads, kWeightRows) * 4 * sizeof(uint32_t);
    case KernelId::mrnf_classify:   // six counts of each block, and the free rows before it
    case KernelId::mrnf_grow_keys:  // one count of each
      return divide_up(threads, kWeightRows) * 8 * sizeof(uint32_t);
    case KernelId::morton_keys:  // the box of all rows, and of each block
      return (1 + divide_up(threads, kBoxRows)) * 6 * sizeof(float);
    default:
      return 0;
  }
}

namespace {

// Of a sort: digits that its keys do not have.
bool skips_digit(const GpuPass& pass, uint64_t n_bits) {
  return pass.pass / kPassesPerDigit >= std::max<uint64_t>(divide_up(n_bits, 8), 1);
}

// Kernels with two passes of which the first is for words and the second for bytes.
bool skips_by_size(const GpuPass& pass, bool is_bytes) { return (pass.pass == 1) != is_bytes; }

bool is_byte(uint32_t dtype) { return dtype == 3; }  // Dtype::U8

}  // namespace

bool gpu_skips_pass(const GpuPass& pass, std::span<const std::byte> params) {
  switch (pass.kernel) {
    case KernelId::radix_sort_pairs: {
      const auto& sort = params_as<RadixSortParams>(params);
      return skips_digit(pass, sort.end_bit - sort.begin_bit);
    }
    case KernelId::sort_instances: {
      const auto& frame = params_as<FrameParams>(params);
      // The last pass finds where tiles begin.
      if (pass.pass + 1 == gpu_passes(pass.kernel).size()) return false;
      return skips_digit(pass, std::bit_width(uint64_t{frame.tiles_x} * frame.tiles_y - 1));
    }
    case KernelId::tensor_compare:
    case KernelId::tensor_where:
    case KernelId::tensor_copy:
    case KernelId::tensor_fill:
      return skips_by_size(pass, is_byte(params_as<PointwiseParams>(params).dtype));
    case KernelId::tensor_cast: {
      const auto& cast = params_as<PointwiseParams>(params);
      return skips_by_size(pass, is_byte(cast.dtype) || is_byte(cast.out_dtype));
    }
    case KernelId::tensor_gather:
    case KernelId::tensor_scatter:
      return skips_by_size(pass, params_as<IndexedRowsParams>(params).element_bytes < 4);
    default:
      return false;
  }
}

}  // namespace millrace
