// Views of a model that comes without cameras, and what a viewer has to know of its place.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/gaussian_cloud.h"
#include "io/cameras_json.h"

namespace millrace {

/// The median of the means, axis by axis, world units; zero without rows.
std::array<double, 3> model_centre(const GaussianCloud& cloud);

/// `n` cameras on a level ring around the model's centre, y down, at three times the distance
/// within which 80 % of the means lie.
std::vector<NamedCamera> ring_cameras(const GaussianCloud& cloud, uint32_t n, uint32_t width,
                                      uint32_t height);

/// A thousandth of the least distance from a camera to `centre`, world units.
double near_plane_for(const std::vector<NamedCamera>& cameras, const std::array<double, 3>& centre);

}  // namespace millrace
