// iterate_affine: x <- a x + b, many times over: arithmetic without memory, by which `bench`
// measures what a device computes per second. Shapes    out: [n] float32, contiguous; element i
// begins as i / n. Threads   one per element. Writes    every element of out. Numerics  each round
// is one fused multiply-add where the device has it. Test      tests/tensor/ops_test.cpp: against
// the closed form.
#include <algorithm>

#include "base/parallel.h"
#include "kernels/isa/hot.h"
#include "kernels/kernel.h"
#include "kernels/tensor_params.h"

namespace millrace::kernels {

void iterate_affine(const KernelCall& call) {
  const auto& p = call.params_as<IterateAffineParams>();
  auto* out = call.buffer<float>(0);
  parallel_for(p.n, 4096, [&](uint64_t begin, uint64_t end) {
    for (uint64_t first = begin; first < end; first += kAffineChains) {
      float x[kAffineChains];
      for (uint64_t i = 0; i < kAffineChains; ++i) {
        x[i] = static_cast<float>(first + i) / static_cast<float>(p.n);
      }
      hot_kernels().iterate_affine(x, p.rounds, p.a, p.b);
      std::copy_n(x, std::min<uint64_t>(kAffineChains, end - first), out + first);
    }
  });
}

}  // namespace millrace::kernels
