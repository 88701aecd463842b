// iterate_affine: x <- a x + b, many times over: arithmetic without memory, by which `bench`
// measures what a device computes per second. Shapes    out: [n] float32, contiguous; element i
// begins as i / n. Threads   one per element. Writes    every element of out. Numerics  each round
// is one fused multiply-add where the device has it. Test      tests/tensor/ops_test.cpp: against
// the closed form.
#include <algorithm>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/tensor_params.h"

namespace millrace::kernels {

void iterate_affine(const KernelCall& call) {
  const auto& p = call.params_as<IterateAffineParams>();
  auto* out = call.buffer<float>(0);
  parallel_for(p.n, 4096, [&](uint64_t begin, uint64_t end) {
    // So many at a time that the additions' delays overlap and the values stay in registers.
    constexpr uint64_t kChains = 32;
    for (uint64_t first = begin; first < end; first += kChains) {
      float x[kChains];
      const uint64_t n = std::min(kChains, end - first);
      for (uint64_t i = 0; i < kChains; ++i) {
        x[i] = static_cast<float>(first + i) / static_cast<float>(p.n);
      }
      for (uint32_t round = 0; round < p.rounds; ++round) {
        for (float& value : x) value = p.a * value + p.b;
      }
      std::copy_n(x, n, out + first);
    }
  });
}

}  // namespace millrace::kernels
