// scan_block_sums, scan_sums, scan_apply: exclusive prefix sum in three launches.
//   sums[b] = sum of block b       total = sum of sums; sums <- exclusive scan of sums
//   out[i] = sums[i / 4096] + in[4096 floor(i / 4096)] + ... + in[i-1]
// Shapes    in, out: [n] uint32. sums: [ceil(n / 4096)] uint64. total: [1] uint64.
//           count: [1] uint32, optional.
// Units     none.
// Threads   one per element; elements past min(n, count) are treated as absent.
// Writes    out up to the count, all of sums, total.
// Numerics  sums and total are uint64 and cannot overflow; out is their low 32 bits.
// Source    Blelloch, Prefix sums and their applications, CMU-CS-90-190, 1990, section 1.2.
// Test      tests/tensor/ops_sort_test.cpp: exact.
#include <algorithm>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/tensor_params.h"

namespace millrace::kernels {
namespace {

uint64_t live_count(const KernelCall& call, size_t count_binding) {
  const auto& p = call.params_as<ScanParams>();
  if (!p.has_count) return p.n;
  return std::min<uint64_t>(p.n, *call.buffer<const uint32_t>(count_binding));
}

}  // namespace

void scan_block_sums(const KernelCall& call) {
  auto* sums = call.buffer<uint64_t>(0);
  const auto* in = call.buffer<const uint32_t>(1);
  const uint64_t n = live_count(call, 2);
  const uint64_t n_blocks = (call.params_as<ScanParams>().n + kScanBlock - 1) / kScanBlock;
  parallel_for(n_blocks, 4, [&](uint64_t first, uint64_t last) {
    for (uint64_t block = first; block < last; ++block) {
      const uint64_t end = std::min(n, (block + 1) * kScanBlock);
      uint64_t sum = 0;
      for (uint64_t i = block * kScanBlock; i < end; ++i) sum += in[i];
      sums[block] = sum;
    }
  });
}

void scan_sums(const KernelCall& call) {
  auto* sums = call.buffer<uint64_t>(1);
  const uint64_t n_blocks = (call.params_as<ScanParams>().n + kScanBlock - 1) / kScanBlock;
  uint64_t running = 0;
  for (uint64_t block = 0; block < n_blocks; ++block) {
    const uint64_t sum = sums[block];
    sums[block] = running;
    running += sum;
  }
  *call.buffer<uint64_t>(0) = running;
}

void scan_apply(const KernelCall& call) {
  auto* out = call.buffer<uint32_t>(0);
  const auto* sums = call.buffer<const uint64_t>(1);
  const auto* in = call.buffer<const uint32_t>(2);
  const uint64_t n = live_count(call, 3);
  parallel_for((n + kScanBlock - 1) / kScanBlock, 4, [&](uint64_t first, uint64_t last) {
    for (uint64_t block = first; block < last; ++block) {
      const uint64_t end = std::min(n, (block + 1) * kScanBlock);
      auto running = static_cast<uint32_t>(sums[block]);
      for (uint64_t i = block * kScanBlock; i < end; ++i) {
        out[i] = running;
        running += in[i];
      }
    }
  });
}

}  // namespace millrace::kernels
