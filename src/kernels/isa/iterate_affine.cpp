// x <- a x + b in registers: so many chains that the additions' delays overlap.
#include "kernels/isa/iterate_affine.h"

#include "kernels/isa/vector.h"

namespace millrace::kernels::MILLRACE_ISA {

constexpr uint32_t kVectors = kAffineChains / kWidth;

void iterate_affine(float* x, uint32_t rounds, float a, float b) {
  vf v[kVectors];
  for (uint32_t i = 0; i < kVectors; ++i) v[i] = load(x + i * kWidth);
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t i = 0; i < kVectors; ++i) v[i] = v[i] * a + b;
  }
  for (uint32_t i = 0; i < kVectors; ++i) store(x + i * kWidth, v[i]);
}

}  // namespace millrace::kernels::MILLRACE_ISA
