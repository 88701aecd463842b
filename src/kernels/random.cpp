// random_fill: random numbers, element i a function of (seed, step, purpose, i) alone.
//   words = philox(seed, step, purpose, row = i / 4), word i % 4
//   uniform: a + b u, u in (0,1)       normal: a + b z, z by Box-Muller from words (0,1) or (2,3)
// Shapes    out: [n] float32, contiguous.
// Units     a, b: the unit of out.
// Threads   one per four elements.
// Writes    every element of out.
// Numerics  u is never 0 or 1, so z is finite, at most 5.9 in size. Lane: the high word of i / 4.
// Source    Salmon et al., Parallel random numbers, SC 2011; Box and Muller, 1958.
// Test      tests/tensor/ops_rows_test.cpp: equal to base/philox.h element by element; moments.
#include "base/parallel.h"
#include "base/philox.h"
#include "kernels/kernel.h"
#include "kernels/tensor_params.h"

namespace millrace::kernels {

void random_fill(const KernelCall& call) {
  const auto& p = call.params_as<RandomParams>();
  auto* out = call.buffer<float>(0);
  parallel_for((p.n + 3) / 4, 1024, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      const auto words = philox(p.seed, p.step, static_cast<RandomPurpose>(p.purpose),
                                static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32));
      float values[4];
      for (int i = 0; i < 4; i += 2) {
        if (static_cast<RandomKind>(p.kind) == RandomKind::Normal) {
          const auto pair = normal_pair(words[i], words[i + 1]);
          values[i] = pair[0];
          values[i + 1] = pair[1];
        } else {
          values[i] = uniform_open(words[i]);
          values[i + 1] = uniform_open(words[i + 1]);
        }
      }
      for (uint64_t i = 0; i < 4 && row * 4 + i < p.n; ++i)
        out[row * 4 + i] = p.a + p.b * values[i];
    }
  });
}

}  // namespace millrace::kernels
