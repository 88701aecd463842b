// reduce_chunks: one level of a reduction tree with a fan-in of 1024 along the middle dimension.
//   out[o,c,i] = scale * fold(in[o, 1024 c .. min(1024 (c+1), length), i])
// Shapes    in: [outer, length, inner], length >= 1. out: [outer, ceil(length/1024), inner].
// Units     none.
// Threads   one per element of out.
// Writes    every element of out.
// Numerics  The order of additions depends on the shape alone: inner == 1 sums 16 interleaved
//           lanes, then folds the lanes in halves; otherwise rows in order. Min and Max pass over
//           NaN. Integers wrap.
// Source    none: definitions.
// Test      tests/tensor/ops_reduce_test.cpp: within 1e-5 of float64; same bits for 1, 2 threads.
#include <algorithm>
#include <array>

#include "base/parallel.h"
#include "kernels/arithmetic.h"
#include "kernels/kernel.h"
#include "kernels/tensor_params.h"

namespace millrace::kernels {
namespace {

constexpr size_t kLanes = 16;

/// Folds `n` >= 1 neighbours. `identity` starts every lane.
template <class T, class F>
T fold_run(const T* in, uint64_t n, T identity, const F& f) {
  std::array<T, kLanes> lanes;
  lanes.fill(identity);
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = f(lanes[lane], in[i + lane]);
  }
  for (size_t lane = 0; i < n; ++i, ++lane) lanes[lane] = f(lanes[lane], in[i]);
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] = f(lanes[lane], lanes[lane + half]);
  }
  return lanes[0];
}

template <class T, class F>
void reduce(const ReduceParams& p, T* out, const T* in, bool is_sum, const F& f) {
  const uint64_t n_chunks = (p.length + kReduceChunk - 1) / kReduceChunk;
  const uint64_t work = std::min(p.length, kReduceChunk) * p.inner;
  const T scale = std::is_same_v<T, float> ? static_cast<T>(p.scale) : T(1);
  parallel_for(p.outer * n_chunks, std::max<uint64_t>(1, 65536 / work),
               [&](uint64_t begin, uint64_t end) {
                 for (uint64_t task = begin; task < end; ++task) {
                   const uint64_t first = task % n_chunks * kReduceChunk;
                   const uint64_t rows = std::min(p.length - first, kReduceChunk);
                   const T* from = in + (task / n_chunks * p.length + first) * p.inner;
                   T* to = out + task * p.inner;
                   if (p.inner == 1) {
                     *to = multiply(fold_run(from, rows, is_sum ? T(0) : *from, f), scale);
                     continue;
                   }
                   std::copy_n(from, p.inner, to);
                   for (uint64_t row = 1; row < rows; ++row) {
                     for (uint64_t i = 0; i < p.inner; ++i)
                       to[i] = f(to[i], from[row * p.inner + i]);
                   }
                   for (uint64_t i = 0; i < p.inner; ++i) to[i] = multiply(to[i], scale);
                 }
               });
}

}  // namespace

void reduce_chunks(const KernelCall& call) {
  const auto& p = call.params_as<ReduceParams>();
  with_word_type(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = call.buffer<T>(0);
    const T* in = call.buffer<const T>(1);
    switch (static_cast<ReduceOp>(p.op)) {
      case ReduceOp::Sum:
        return reduce(p, out, in, true, [](T a, T b) { return add(a, b); });
      case ReduceOp::Min:
        return reduce(p, out, in, false, [](T a, T b) { return minimum(a, b); });
      case ReduceOp::Max:
        return reduce(p, out, in, false, [](T a, T b) { return maximum(a, b); });
    }
  });
}

}  // namespace millrace::kernels
