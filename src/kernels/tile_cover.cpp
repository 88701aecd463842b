// The tile test of this processor's instruction set.
#include "kernels/tile_cover.h"

#include "kernels/isa/hot.h"

namespace millrace::kernels {

uint32_t cover_tiles(const Projected& gaussian, uint32_t tiles_x, uint32_t tiles_y,
                     uint32_t* tiles) {
  return hot_kernels().cover_tiles(gaussian, tiles_x, tiles_y, tiles);
}

}  // namespace millrace::kernels
