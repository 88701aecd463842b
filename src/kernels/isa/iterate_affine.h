// iterate_affine's inner loop (kernels/iterate_affine.cpp).
#pragma once

#include "kernels/isa/hot.h"

namespace millrace::kernels::MILLRACE_ISA {
void iterate_affine(float* x, uint32_t rounds, float a, float b);
}  // namespace millrace::kernels::MILLRACE_ISA
