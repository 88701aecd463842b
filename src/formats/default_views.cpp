// Cameras around a model.
#include "formats/default_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace millrace {
namespace {

double distance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

}  // namespace

std::array<double, 3> model_centre(const GaussianCloud& cloud) {
  std::array<double, 3> centre = {};
  std::vector<float> values(cloud.count());
  for (size_t k = 0; k < 3 && !values.empty(); ++k) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = cloud.means[3 * i + k];
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    centre[k] = *middle;
  }
  return centre;
}

std::vector<NamedCamera> ring_cameras(const GaussianCloud& cloud, uint32_t n, uint32_t width,
                                      uint32_t height) {
  const std::array<double, 3> centre = model_centre(cloud);
  std::vector<double> radii;
  for (size_t i = 0; i < cloud.count(); ++i) {
    const float* m = &cloud.means[3 * i];
    radii.push_back(distance({m[0], m[1], m[2]}, centre));
  }
  double radius = 1;
  if (!radii.empty()) {
    const auto most = radii.begin() + static_cast<ptrdiff_t>(radii.size() * 8 / 10);
    std::nth_element(radii.begin(), most, radii.end());
    radius = 3 * std::max(*most, 1e-3);
  }
  std::vector<NamedCamera> cameras;
  for (uint32_t i = 0; i < n; ++i) {
    const double angle = 2 * std::numbers::pi * i / n, c = std::cos(angle), s = std::sin(angle);
    NamedCamera named;
    named.name = fmt::format("ring_{}", i);
    Camera& camera = named.camera;
    camera.width = width;
    camera.height = height;
    camera.fx = camera.fy = 1.2 * std::min(width, height);
    camera.cx = 0.5 * width;
    camera.cy = 0.5 * height;
    // Turned about y; the centre is `radius` ahead.
    camera.world_to_camera = {c, 0, s, 0, 0, 1, 0, 0, -s, 0, c, 0};
    for (size_t row = 0; row < 3; ++row) {
      double& t = camera.world_to_camera[4 * row + 3];
      for (size_t k = 0; k < 3; ++k) t -= camera.world_to_camera[4 * row + k] * centre[k];
    }
    camera.world_to_camera[11] += radius;
    cameras.push_back(named);
  }
  return cameras;
}

double near_plane_for(const std::vector<NamedCamera>& cameras,
                      const std::array<double, 3>& centre) {
  double nearest = INFINITY;
  for (const NamedCamera& named : cameras) {
    nearest = std::min(nearest, distance(camera_centre(named.camera), centre));
  }
  return std::isfinite(nearest) ? std::max(0.001 * nearest, 1e-6) : 1e-3;
}

}  // namespace millrace
