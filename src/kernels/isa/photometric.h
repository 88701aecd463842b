// L1 + SSIM of one band of rows of one channel, forward and backward (TRAINING.md 4.1).
#pragma once

#include "kernels/isa/hot.h"
#include "kernels/isa/vector.h"

namespace millrace::kernels::MILLRACE_ISA {
void photometric_forward_band(const PhotometricArgs& args, uint32_t channel, uint32_t band,
                              float* sums);
void photometric_backward_band(const PhotometricArgs& args, uint32_t channel, uint32_t band);
}  // namespace millrace::kernels::MILLRACE_ISA
