// Which tiles a projected Gaussian touches (kernels/tile_cover.h).
#pragma once

#include "kernels/isa/hot.h"

namespace millrace::kernels::MILLRACE_ISA {
uint32_t cover_tiles(const Projected& gaussian, uint32_t tiles_x, uint32_t tiles_y,
                     uint32_t* tiles);
}  // namespace millrace::kernels::MILLRACE_ISA
