// Alpha blending of one 16x16 tile, forward and backward (TRAINING.md 2.4, 2.5).
#pragma once

#include "kernels/isa/hot.h"
#include "kernels/isa/vector.h"

namespace millrace::kernels::MILLRACE_ISA {
void blend_forward_tile(const BlendArgs& args, uint32_t tile);
void blend_backward_tile(const BlendArgs& args, uint32_t tile);
}  // namespace millrace::kernels::MILLRACE_ISA
