// radix_sort_pairs: sorts (key, value) pairs by bits [begin_bit, end_bit) of the key, stably.
//   per pass: histogram each block -> scan over (digit, block) -> each block places its pairs
// Shapes    keys_out, keys_tmp, keys_in: [n] uint32 or uint64. values_*: [n] uint32.
//           count: [1] uint32, optional. histograms: [ceil(n / 16384), 2^digit bits] uint32.
// Units     bits: positions in the key, 0 the lowest.
// Threads   one per pair; pairs past min(n, count) are neither read nor written.
// Writes    keys_out, values_out up to the count; keys_tmp, values_tmp, histograms are scratch.
// Numerics  integers; the result is unique, so it depends on no thread count. n < 2^32.
// Source    Zagha and Blelloch, Radix sort for vector multiprocessors, SC 1991, section 3.
// Test      tests/tensor/ops_sort_test.cpp: equal to std::stable_sort.
#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/tensor_params.h"

namespace millrace::kernels {
namespace {

template <class Key>
struct Pairs {
  Key* keys;
  uint32_t* values;
};

/// Turns counts [n_blocks, n_digits] into the place of each block's first pair of each digit.
/// Returns whether one digit holds all `n` pairs.
bool place_digits(uint32_t* histograms, uint64_t n_blocks, uint32_t n_digits, uint64_t n) {
  uint32_t next[1u << kSortMaxDigitBits] = {};
  for (uint64_t block = 0; block < n_blocks; ++block) {
    for (uint32_t d = 0; d < n_digits; ++d) next[d] += histograms[block * n_digits + d];
  }
  uint32_t running = 0;
  for (uint32_t d = 0; d < n_digits; ++d) {
    if (next[d] == n) return true;
    const uint32_t count = next[d];
    next[d] = running;
    running += count;
  }
  for (uint64_t block = 0; block < n_blocks; ++block) {
    for (uint32_t d = 0; d < n_digits; ++d) {
      const uint32_t count = histograms[block * n_digits + d];
      histograms[block * n_digits + d] = next[d];
      next[d] += count;
    }
  }
  return false;
}

template <class Key>
void sort(const KernelCall& call) {
  const auto& p = call.params_as<RadixSortParams>();
  const Pairs<Key> out{call.buffer<Key>(0), call.buffer<uint32_t>(1)};
  const Pairs<Key> tmp{call.buffer<Key>(2), call.buffer<uint32_t>(3)};
  auto* histograms = call.buffer<uint32_t>(4);
  Pairs<Key> from{call.buffer<Key>(5), call.buffer<uint32_t>(6)};
  uint64_t n = p.n;
  if (p.has_count) n = std::min<uint64_t>(n, *call.buffer<const uint32_t>(7));
  const uint64_t n_blocks = (n + kSortBlock - 1) / kSortBlock;
  const uint32_t bits = p.end_bit - p.begin_bit;
  const uint32_t n_passes = (bits + kSortMaxDigitBits - 1) / kSortMaxDigitBits;
  const uint32_t digit_bits = n_passes == 0 ? 0 : (bits + n_passes - 1) / n_passes;
  for (uint32_t pass = 0; pass < n_passes && n > 0; ++pass) {
    const uint32_t shift = p.begin_bit + pass * digit_bits;
    const uint32_t width = std::min(digit_bits, p.end_bit - shift);
    const uint32_t n_digits = 1u << width;
    const Key mask = n_digits - 1;
    parallel_blocks(n_blocks, [&](uint64_t block) {
      uint32_t* histogram = histograms + block * n_digits;
      std::fill_n(histogram, n_digits, 0u);
      const uint64_t end = std::min(n, (block + 1) * kSortBlock);
      for (uint64_t i = block * kSortBlock; i < end; ++i) ++histogram[from.keys[i] >> shift & mask];
    });
    if (place_digits(histograms, n_blocks, n_digits, n)) continue;
    // The last pass should land in `out`; skipped passes may spoil that, and a copy mends it below.
    const bool to_out =
        from.keys == tmp.keys || (from.keys != out.keys && (n_passes - pass) % 2 == 1);
    const Pairs<Key> to = to_out ? out : tmp;
    parallel_blocks(n_blocks, [&](uint64_t block) {
      uint32_t* next = histograms + block * n_digits;
      const uint64_t end = std::min(n, (block + 1) * kSortBlock);
      for (uint64_t i = block * kSortBlock; i < end; ++i) {
        const Key key = from.keys[i];
        const uint32_t place = next[key >> shift & mask]++;
        to.keys[place] = key;
        to.values[place] = from.values[i];
      }
    });
    from = to;
  }
  if (from.keys == out.keys) return;
  parallel_blocks(n_blocks, [&](uint64_t block) {
    const uint64_t begin = block * kSortBlock, end = std::min(n, begin + kSortBlock);
    std::copy(from.keys + begin, from.keys + end, out.keys + begin);
    std::copy(from.values + begin, from.values + end, out.values + begin);
  });
}

}  // namespace

void radix_sort_pairs(const KernelCall& call) {
  if (call.params_as<RadixSortParams>().key_bytes == 8) return sort<uint64_t>(call);
  sort<uint32_t>(call);
}

}  // namespace millrace::kernels
