// Points for the parts of the photographs in which the capture found none: sky, blank walls,
// backgrounds.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace millrace {

/// Cells across the longer image side; a cell without a projected point gets one.
constexpr uint32_t kFillCells = 12;
constexpr double kFillShare = 0.5;

/// At most `n_most` gray points: one at a random place of each empty cell of each training view, at
/// a depth between the median and eight times the median depth of the points in that view, evenly
/// in inverse depth. None unless more than kFillShare of all cells are empty: elsewhere growth gets
/// there by itself, and gray points only cost quality. Drawn in camera coordinates, so moving,
/// turning or scaling the world moves them along. A function of the arguments alone. Empty if no
/// view sees a point.
PointCloud draw_fill_points(const std::vector<View>& views, const PointCloud& points,
                            uint64_t n_most, uint64_t seed);

}  // namespace millrace
