// Builders of test scenes.
#include "splat/scene.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace millrace::test {
namespace {

constexpr double kSh0 = 0.28209479177387814;

double logit(double p) { return std::log(p / (1 - p)); }

// The world position of pixel (x, y) at depth z.
std::array<double, 3> back_project(const Camera& camera, double x, double y, double z) {
  const auto& m = camera.world_to_camera;
  const double p[3] = {(x - camera.cx) / camera.fx * z - m[3],
                       (y - camera.cy) / camera.fy * z - m[7], z - m[11]};
  std::array<double, 3> world;
  for (int i = 0; i < 3; ++i) world[i] = m[i] * p[0] + m[4 + i] * p[1] + m[8 + i] * p[2];
  return world;
}

void append_floats(std::vector<float>& to, std::initializer_list<double> values) {
  for (double value : values) to.push_back(static_cast<float>(value));
}

}  // namespace

double test_uniform(uint64_t seed, uint32_t row, uint32_t lane) {
  return uniform_open(philox(seed, 0, RandomPurpose::Synthetic, row, lane)[0]);
}

double test_normal(uint64_t seed, uint32_t row, uint32_t lane) {
  const auto words = philox(seed, 0, RandomPurpose::Synthetic, row, lane);
  return normal_pair(words[0], words[1])[0];
}

Camera test_camera(uint32_t width, uint32_t height) {
  Camera camera;
  camera.width = width;
  camera.height = height;
  const double focal = 0.9 * std::max(width, height);
  camera.fx = focal;
  camera.fy = 1.07 * focal;
  camera.cx = 0.47 * width;
  camera.cy = 0.54 * height;
  // Rotation by unit quaternion (0.8, 0.2, -0.4, 0.4).
  camera.world_to_camera = {0.36, -0.8, -0.48, 0.3, 0.48, 0.6, -0.64, -0.2, 0.8, 0, 0.6, 1.5};
  return camera;
}

TestScene test_scene(uint32_t n, uint64_t seed, uint32_t width, uint32_t height, int sh_degree) {
  TestScene scene;
  scene.camera = test_camera(width, height);
  scene.cloud.sh_degree = sh_degree;
  for (uint32_t row = 0; row < n; ++row) {
    const auto uniform = [&](uint32_t lane) { return test_uniform(seed, row, lane); };
    const double x = -12 + (width + 24.0) * uniform(0);
    const double y = -12 + (height + 24.0) * uniform(1);
    // Depths so far apart that float32 and float64 sort them alike; 7919 is prime.
    const double z = 2 + 6 * (row * 7919u % n + 0.5) / n;
    const auto mean = back_project(scene.camera, x, y, z);
    append_floats(scene.cloud.means, {mean[0], mean[1], mean[2]});
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const double u = uniform(3 + axis);
      const double sigma_px = 0.5 * std::pow(60.0, u * std::sqrt(u));
      append_floats(scene.cloud.log_scales, {std::log(sigma_px * z / scene.camera.fx)});
    }
    const double size = 0.4 + 1.8 * uniform(6);
    for (uint32_t i = 0; i < 4; ++i) {
      append_floats(scene.cloud.rotations, {size * test_normal(seed, row, 7 + i)});
    }
    append_floats(scene.cloud.opacities, {logit(0.1 + 0.85 * uniform(11))});
    for (uint32_t channel = 0; channel < 3; ++channel) {
      append_floats(scene.cloud.sh0, {(0.4 + 0.5 * uniform(12 + channel) - 0.5) / kSh0});
    }
    // The norm of the 16 basis functions is sqrt(16 / 4 pi) = 1.13 in every direction, so that a
    // colour strays by 0.06 from its constant term and stays off the clamp at 0.
    for (int k = 0; k < 3 * sh_rest_count(sh_degree); ++k) {
      append_floats(scene.cloud.sh_rest, {0.05 * test_normal(seed, row, 20 + k)});
    }
  }
  return scene;
}

void append_gaussian(GaussianCloud& cloud, const Camera& camera, double x, double y, double z,
                     double sigma_px, double opacity, const std::array<double, 3>& color) {
  const auto mean = back_project(camera, x, y, z);
  const double log_scale = std::log(sigma_px * z / camera.fx);
  append_floats(cloud.means, {mean[0], mean[1], mean[2]});
  append_floats(cloud.log_scales, {log_scale, log_scale, log_scale});
  append_floats(cloud.rotations, {1, 0, 0, 0});
  append_floats(cloud.opacities, {logit(opacity)});
  for (double value : color) append_floats(cloud.sh0, {(value - 0.5) / kSh0});
  cloud.sh_rest.resize(cloud.count() * 3 * sh_rest_count(cloud.sh_degree), 0.0f);
}

void append_culled_rows(GaussianCloud& cloud, const Camera& camera, double near_plane) {
  const double x = camera.width / 2.0, y = camera.height / 2.0;
  append_gaussian(cloud, camera, x, y, -3, -3, 0.9, {1, 0, 0});
  append_gaussian(cloud, camera, x, y, 0.9 * near_plane, 3, 0.9, {0, 1, 0});
  append_gaussian(cloud, camera, x, y, 2, 3, 0.003, {0, 0, 1});
  append_gaussian(cloud, camera, x, y, 2, 3, 0.9, {1, 1, 0});
  std::fill(cloud.rotations.end() - 4, cloud.rotations.end(), 0.0f);
}

std::vector<uint8_t> test_target(uint32_t width, uint32_t height, uint64_t seed) {
  std::vector<uint8_t> target;
  for (uint32_t channel = 0; channel < 3; ++channel) {
    for (uint32_t y = 0; y < height; ++y) {
      for (uint32_t x = 0; x < width; ++x) {
        const double wave = std::sin(0.31 * x + 0.7 * channel + static_cast<double>(seed)) *
                            std::cos(0.23 * y - 0.4 * channel);
        const double noise = test_uniform(seed + 77, y * width + x, channel);
        target.push_back(static_cast<uint8_t>(110 + 70 * wave + 60 * noise));
      }
    }
  }
  return target;
}

}  // namespace millrace::test
