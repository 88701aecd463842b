// Distances to nearest neighbours: how large a Gaussian that starts at a point should be.
#pragma once

#include <span>
#include <vector>

namespace millrace {

/// For each point of `xyz` [P,3] (finite, world units) the mean of the squared distances to its 3
/// nearest neighbours (fewer in clouds of fewer than 4 points), in world units squared.
/// Scale-equivariant. A point whose neighbours all coincide with it (relative to the median of the
/// cloud) gets the median; never NaN and never 0. A cloud without any distance (one point, or all
/// the same) gets 1 everywhere.
std::vector<float> mean_square_distance_to_3_nearest(std::span<const float> xyz);

}  // namespace millrace
