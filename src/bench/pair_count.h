// How many (Gaussian, pixel) pairs of a frame were blended, counted from its buffers.
#pragma once

#include <cstdint>

#include "kernels/splat_params.h"

namespace millrace {

/// A rendered frame on the host, as the workspace holds it.
struct FrameLists {
  const Projected* projected;    // [N]
  const uint32_t* instance_row;  // [capacity]
  const uint32_t* sorted_slots;  // [capacity]
  const uint32_t* tile_ranges;   // [tiles,2]
  const uint32_t* last;          // [tiles,256]
  uint32_t width, height;        // px
};

struct PairCount {
  uint64_t blended = 0;  // alpha >= 1/255 and before the pixel's stop
  uint64_t boxed = 0;    // in the box of the Gaussian's extents and before the pixel's stop
  uint64_t walked = 0;   // entries of the tile's list before the pixel's stop
};

/// Counts with the scalar reference's arithmetic, on all threads.
PairCount count_pairs(const FrameLists& frame);

}  // namespace millrace
