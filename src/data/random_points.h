// Points for captures that have none: drawn where the cameras look.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace millrace {

/// `n_points` points inside the frusta of the training views, with random colours. Most are drawn
/// at depths up to twice the distance of the scene's focus (the point nearest to all optical axes)
/// and kept where a quarter to three quarters of the cameras see them (fewer where no place is seen
/// by that many); one in ten is drawn farther out and kept where two cameras see it. Every draw is
/// made in a camera's own frame, so moving, turning or scaling the world moves the points with it
/// (all cameras in one place: the unit is taken for 1). A function of the views and the seed alone.
PointCloud draw_points_in_frusta(const std::vector<View>& views, uint64_t n_points, uint64_t seed);

}  // namespace millrace
