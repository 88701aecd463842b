// Test scenes: overlapping Gaussians before a tilted camera, as a function of a seed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/gaussian_cloud.h"
#include "data/dataset.h"

namespace millrace::test {

struct TestScene {
  GaussianCloud cloud;
  Camera camera;
  std::array<double, 3> background = {0.25, 0.55, 0.4};
  double near_plane = 0.01;
};

/// Uniform number in (0, 1) of (seed, row, lane).
double test_uniform(uint64_t seed, uint32_t row, uint32_t lane);
/// Standard normal number of (seed, row, lane).
double test_normal(uint64_t seed, uint32_t row, uint32_t lane);

/// A tilted camera with unequal focal lengths and an off-centre principal point. [px]
Camera test_camera(uint32_t width, uint32_t height);

/// `n` Gaussians of standard deviations 0.5 to 30 px (small ones more often), opacities 0.1 to
/// 0.95, unnormalised rotations, colours strictly inside [0, 4], centres up to 12 px outside of the
/// frame, depths 2 to 8 at least 6 / n apart. `n` is below 7919.
TestScene test_scene(uint32_t n, uint64_t seed, uint32_t width = 48, uint32_t height = 40,
                     int sh_degree = 3);

/// One Gaussian before `camera` at pixel (x, y) and depth z with an isotropic size in px, colour by
/// sh0 only; appended to `cloud`.
void append_gaussian(GaussianCloud& cloud, const Camera& camera, double x, double y, double z,
                     double sigma_px, double opacity, const std::array<double, 3>& color);

/// Appends rows that must not be drawn: behind the camera, before the near plane, transparent, and
/// with a zero quaternion.
void append_culled_rows(GaussianCloud& cloud, const Camera& camera, double near_plane);

/// A target image [3,H,W] with structure: `seed` picks waves and noise.
std::vector<uint8_t> test_target(uint32_t width, uint32_t height, uint64_t seed);

}  // namespace millrace::test
