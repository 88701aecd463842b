// Which tiles a projected Gaussian touches: one function for counting and for emitting, so that
// both agree.
#pragma once

#include <cstdint>

#include "kernels/splat_params.h"

namespace millrace::kernels {

/// How many tiles of a tiles_x by tiles_y grid hold a pixel centre inside the ellipse alpha >=
/// 1/255. If `tiles` is not null, also writes their ids (row-major) in rising order.
uint32_t cover_tiles(const Projected& gaussian, uint32_t tiles_x, uint32_t tiles_y,
                     uint32_t* tiles);

}  // namespace millrace::kernels
