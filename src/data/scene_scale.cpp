// Camera centres and the scene's scale.
#include "data/scene_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace millrace {

std::array<double, 3> camera_centre(const Camera& camera) {
  const auto& m = camera.world_to_camera;
  std::array<double, 3> centre;
  for (int k = 0; k < 3; ++k) centre[k] = -(m[k] * m[3] + m[4 + k] * m[7] + m[8 + k] * m[11]);
  return centre;
}

SceneScale scene_scale(const Dataset& dataset) {
  const size_t n = dataset.views.size();
  if (n == 0) return {};
  std::array<double, 3> mean = {};
  std::vector<std::array<double, 3>> centres;
  double farthest = 0;  // from the origin: the size of a rounding error goes with it
  for (const View& view : dataset.views) {
    centres.push_back(camera_centre(view.camera));
    for (int k = 0; k < 3; ++k) {
      mean[k] += centres.back()[k] / static_cast<double>(n);
      farthest = std::max(farthest, std::abs(centres.back()[k]));
    }
  }
  std::vector<double> distances;
  distances.reserve(n);
  for (const auto& c : centres) {
    distances.push_back(std::hypot(c[0] - mean[0], c[1] - mean[1], c[2] - mean[2]));
  }
  std::sort(distances.begin(), distances.end());
  const double median = 0.5 * (distances[(n - 1) / 2] + distances[n / 2]);
  if (!(median > 1e-9 * farthest)) return {};
  return {median, 1.1 * distances.back() / median};
}

}  // namespace millrace
