// Prefix sums and sorting.
#include <fmt/format.h>

#include "tensor/check.h"
#include "tensor/launch.h"
#include "tensor/ops.h"

namespace millrace {

Scan exclusive_scan(const Tensor& x, const Tensor& count, Site site) {
  require_operands("exclusive_scan", {&x}, site);
  require_dtype("exclusive_scan", x, Dtype::U32, {&x}, site);
  if (x.rank() != 1) fail("exclusive_scan", "needs [N]", {&x}, site);
  if (count.defined()) {
    require_operands("exclusive_scan", {&x, &count}, site);
    require_count("exclusive_scan", count, {&x, &count}, site);
  }
  Device& device = x.device();
  const uint64_t n = x.numel();
  Scan scan{Tensor::empty(device, x.shape(), Dtype::U32, "scan", site),
            Tensor::empty(device, Shape(1), Dtype::U64, "scan", site)};
  if (n == 0) {
    scan.total.fill_(0, site);
    return scan;
  }
  const uint64_t n_blocks = (n + kScanBlock - 1) / kScanBlock;
  const Tensor sums = Tensor::empty(device, Shape(n_blocks), Dtype::U64, "scan", site);
  const Tensor packed = x.contiguous(site);
  const ScanParams params{n, count.defined() ? 1u : 0u, 0};
  // Without a count its binding is never read.
  const Binding in = read(packed, site), limit = count.defined() ? read(count, site) : in;
  launch(device, KernelId::scan_block_sums, n, {write(sums, site), in, limit}, params, site);
  launch(device, KernelId::scan_sums, 1, {write(scan.total, site), update(sums, site)}, params,
         site);
  launch(device, KernelId::scan_apply, n, {write(scan.offsets, site), read(sums, site), in, limit},
         params, site);
  return scan;
}

SortedPairs radix_sort_pairs(const Tensor& keys, const Tensor& values, const Tensor& count,
                             int begin_bit, int end_bit, Site site) {
  constexpr const char* kName = "radix_sort_pairs";
  require_operands(kName, {&keys, &values}, site);
  require_dtype(kName, values, Dtype::U32, {&keys, &values}, site);
  if (keys.dtype() != Dtype::U32 && keys.dtype() != Dtype::U64) {
    fail(kName, "keys must be U32 or U64", {&keys, &values}, site);
  }
  if (keys.rank() != 1 || values.shape() != keys.shape() || keys.numel() >> 32 != 0) {
    fail(kName, "needs keys and values [N], N < 2^32", {&keys, &values}, site);
  }
  if (count.defined()) {
    require_operands(kName, {&keys, &values, &count}, site);
    require_count(kName, count, {&keys, &values, &count}, site);
  }
  const int key_bits = keys.dtype() == Dtype::U64 ? 64 : 32;
  if (end_bit < 0) end_bit = key_bits;
  if (begin_bit < 0 || begin_bit > end_bit || end_bit > key_bits) {
    fail(kName, fmt::format("bits [{},{}) are not in the key", begin_bit, end_bit),
         {&keys, &values}, site);
  }
  Device& device = keys.device();
  const auto scratch = [&](uint64_t n, Dtype dtype) {
    return Tensor::empty(device, Shape(n), dtype, "sort", site);
  };
  const uint64_t n = keys.numel();
  SortedPairs sorted{scratch(n, keys.dtype()), scratch(n, Dtype::U32)};
  if (n == 0) return sorted;
  const auto bits = static_cast<uint32_t>(end_bit - begin_bit);
  const uint32_t n_passes = (bits + kSortMaxDigitBits - 1) / kSortMaxDigitBits;
  const uint32_t digit_bits = n_passes == 0 ? 0 : (bits + n_passes - 1) / n_passes;
  const uint64_t n_blocks = (n + kSortBlock - 1) / kSortBlock;
  const Tensor keys_tmp = scratch(n, keys.dtype()), values_tmp = scratch(n, Dtype::U32);
  const Tensor histograms = scratch(n_blocks << digit_bits, Dtype::U32);
  const Tensor keys_in = keys.contiguous(site), values_in = values.contiguous(site);
  const RadixSortParams params{n, static_cast<uint32_t>(key_bits / 8),
                               static_cast<uint32_t>(begin_bit), static_cast<uint32_t>(end_bit),
                               count.defined() ? 1u : 0u};
  // Without a count its binding is never read.
  const Binding in = read(keys_in, site), limit = count.defined() ? read(count, site) : in;
  launch(device, KernelId::radix_sort_pairs, n,
         {update(sorted.keys, site), update(sorted.values, site), update(keys_tmp, site),
          update(values_tmp, site), update(histograms, site), in, read(values_in, site), limit},
         params, site);
  return sorted;
}

}  // namespace millrace
