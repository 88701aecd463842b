// How a bilateral grid lies over an image (TRAINING.md 5.2): its cells, and the areas between them.
// A pixel of an area reads the area's four columns of cells and no others.
#pragma once

#include <cstdint>

#include "kernels/appearance_params.h"

namespace millrace::kernels {

/// Areas along x or y; an image of fewer pixels leaves some empty.
constexpr uint32_t kGridAreasAcross = kGridColumns - 1;
static_assert(kGridAreas == kGridAreasAcross * kGridAreasAcross && kGridColumns == kGridRows);

/// What positions along `extent` pixels are divided by; the first pixel lies on cell 0, the last
/// one on the last cell.
constexpr uint32_t grid_span(uint32_t extent) { return extent > 1 ? extent - 1 : 1; }
/// The first pixel of area `i`, and the end of the one before; kGridAreasAcross gives the extent.
constexpr uint32_t area_begin(uint32_t i, uint32_t extent) {
  if (i >= kGridAreasAcross) return extent;
  const uint32_t begin = (i * grid_span(extent) + kGridAreasAcross - 1) / kGridAreasAcross;
  return begin < extent ? begin : extent;
}
/// The share of an area's further cell at pixel `x`, as a multiple of 1 / grid_span.
constexpr uint32_t area_offset(uint32_t i, uint32_t x, uint32_t extent) {
  return x * kGridAreasAcross - i * grid_span(extent);
}

/// Index of a cell in [C,L,H,W].
constexpr uint32_t grid_index(uint32_t channel, uint32_t level, uint32_t row, uint32_t column) {
  return ((channel * kGridLevels + level) * kGridRows + row) * kGridColumns + column;
}
/// Index in an area's partial gradient [corner,L,C]; corner 2 j + i is the cell at (+i, +j).
constexpr uint32_t partial_index(uint32_t corner, uint32_t level, uint32_t channel) {
  return (corner * kGridLevels + level) * kGridMaxChannels + channel;
}

}  // namespace millrace::kernels
