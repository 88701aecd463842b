// PPISP exposure correction of a band of rows, forward and backward (TRAINING.md 5.3).
#pragma once

#include "kernels/isa/hot.h"
#include "kernels/isa/vector.h"

namespace millrace::kernels::MILLRACE_ISA {
void ppisp_forward_band(const PpispArgs& args, uint32_t band);
void ppisp_backward_band(const PpispArgs& args, uint32_t band, float* sums);
}  // namespace millrace::kernels::MILLRACE_ISA
