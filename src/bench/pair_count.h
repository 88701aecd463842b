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

/// Operations of the scalar reference for one blended pair (CONTRACTS.md: FLOPs of a blend), with
/// its own exp:
///   to alpha    dx, dy 2, y1 3, y2 1, power 4, negation 1, exp 24, opacity 1, least 1, tests 2: 39
///   forward     weight 1, three colours 6, transmittance 1: 8
///   backward    1 - alpha 1, quotient 1, weight 1, colour gradient 5, three colours 6, weight sum
///               1, dalpha 2, opacity 2, h 2, moments 10, colour behind 3: 34
constexpr double kAlphaOperations = 39, kForwardOperations = 8, kBackwardOperations = 34;
constexpr double kBlendForwardOperations = kAlphaOperations + kForwardOperations;
constexpr double kBlendBackwardOperations = kAlphaOperations + kBackwardOperations;

}  // namespace millrace
