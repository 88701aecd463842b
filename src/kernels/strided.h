// Walking strided operands in row-major order, for the pointwise CPU kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/parallel.h"
#include "kernels/tensor_params.h"

namespace millrace::kernels {

/// Elements per task.
constexpr uint64_t kPointwiseGrain = 16384;

/// Calls body(offsets, length) for runs along the last dimension that together cover all elements
/// once, in parallel; offsets[i] is where the run begins in operand i, in elements.
template <int kOperands, class Body>
void for_each_run(const PointwiseParams& p, const Body& body) {
  const uint32_t last = p.rank - 1;
  parallel_for(p.n, kPointwiseGrain, [&](uint64_t begin, uint64_t end) {
    uint64_t index[kTensorMaxRank];
    std::array<uint64_t, kOperands> offsets{};
    uint64_t rest = begin;
    for (uint32_t dim = p.rank; dim-- > 0;) {
      index[dim] = rest % p.shape[dim];
      rest /= p.shape[dim];
      for (int i = 0; i < kOperands; ++i) offsets[i] += index[dim] * p.strides[i][dim];
    }
    while (begin < end) {
      const uint64_t length = std::min(p.shape[last] - index[last], end - begin);
      body(offsets, length);
      begin += length;
      // Unsigned wrap-around makes the step back exact.
      for (int i = 0; i < kOperands; ++i) offsets[i] -= index[last] * p.strides[i][last];
      index[last] = 0;
      for (uint32_t dim = last; dim-- > 0;) {
        for (int i = 0; i < kOperands; ++i) offsets[i] += p.strides[i][dim];
        if (++index[dim] < p.shape[dim]) break;
        for (int i = 0; i < kOperands; ++i) offsets[i] -= p.shape[dim] * p.strides[i][dim];
        index[dim] = 0;
      }
    }
  });
}

/// out[i] = f(in[i]); `out` walks as operand kOut of `p`, `in` as operand kIn.
template <int kOut, int kIn, class Out, class In, class F>
void map_unary(const PointwiseParams& p, Out* out, const In* in, const F& f) {
  constexpr int kOperands = std::max(kOut, kIn) + 1;
  const uint64_t step_out = p.strides[kOut][p.rank - 1], step_in = p.strides[kIn][p.rank - 1];
  for_each_run<kOperands>(p, [&](const std::array<uint64_t, kOperands>& offsets, uint64_t n) {
    Out* to = out + offsets[kOut];
    const In* from = in + offsets[kIn];
    if (step_out == 1 && step_in == 1) {
      for (uint64_t i = 0; i < n; ++i) to[i] = f(from[i]);
    } else {
      for (uint64_t i = 0; i < n; ++i) to[i * step_out] = f(from[i * step_in]);
    }
  });
}

/// out[i] = f(a[i], b[i]); each pointer walks as the operand of `p` that its number names.
template <int kOut, int kA, int kB, class Out, class In, class F>
void map_binary(const PointwiseParams& p, Out* out, const In* a, const In* b, const F& f) {
  constexpr int kOperands = std::max({kOut, kA, kB}) + 1;
  const uint32_t last = p.rank - 1;
  const uint64_t step = p.strides[kOut][last], step_a = p.strides[kA][last],
                 step_b = p.strides[kB][last];
  for_each_run<kOperands>(p, [&](const std::array<uint64_t, kOperands>& offsets, uint64_t n) {
    Out* to = out + offsets[kOut];
    const In* x = a + offsets[kA];
    const In* y = b + offsets[kB];
    if (step == 1 && step_a == 1 && step_b == 1) {
      for (uint64_t i = 0; i < n; ++i) to[i] = f(x[i], y[i]);
    } else if (step == 1 && step_a == 1 && step_b == 0) {
      const In scalar = *y;
      for (uint64_t i = 0; i < n; ++i) to[i] = f(x[i], scalar);
    } else {
      for (uint64_t i = 0; i < n; ++i) to[i * step] = f(x[i * step_a], y[i * step_b]);
    }
  });
}

}  // namespace millrace::kernels
