// Tests of camera placement and lens model.
#include "synth/capture_camera.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace millrace::synth {
namespace {

TEST(CaptureCamera, UnprojectUndoesProjectThroughADistortedLens) {
  CaptureOptions options;
  options.distortion = true;
  const Lens lens = make_lens(options);
  for (double v = 0; v <= 480; v += 60) {
    for (double u = 0; u <= 640; u += 80) {
      const auto direction = unproject(lens, u, v);
      const auto back = project(lens, {direction[0], direction[1], 1});
      EXPECT_NEAR(back[0], u, 1e-3);
      EXPECT_NEAR(back[1], v, 1e-3);
    }
  }
}

TEST(CaptureCamera, DistortionBendsAStraightLineAndPinholeDoesNot) {
  CaptureOptions options;
  for (const bool distortion : {false, true}) {
    options.distortion = distortion;
    const Lens lens = make_lens(options);
    // A horizontal line near the top of the image.
    const auto left = project(lens, {-1.0, -0.7, 2}), middle = project(lens, {0.0, -0.7, 2});
    const auto right = project(lens, {1.0, -0.7, 2});
    const double bend = std::abs(middle[1] - 0.5 * (left[1] + right[1]));
    if (distortion) {
      EXPECT_GT(bend, 4.0);
    } else {
      EXPECT_LT(bend, 1e-9);
    }
  }
}

TEST(CaptureCamera, ShotsHaveRotationsAndFaceTheScene) {
  const CaptureOptions options;
  std::set<std::string> names;
  for (const Shot& shot : make_shots(options)) {
    names.insert(shot.name);
    const auto& m = shot.world_to_camera;
    for (size_t a = 0; a < 3; ++a) {
      for (size_t b = 0; b < 3; ++b) {
        const double product =
            m[4 * a] * m[4 * b] + m[4 * a + 1] * m[4 * b + 1] + m[4 * a + 2] * m[4 * b + 2];
        EXPECT_NEAR(product, a == b ? 1.0 : 0.0, 1e-12);
      }
    }
    const double determinant = m[0] * (m[5] * m[10] - m[6] * m[9]) -
                               m[1] * (m[4] * m[10] - m[6] * m[8]) +
                               m[2] * (m[4] * m[9] - m[5] * m[8]);
    EXPECT_NEAR(determinant, 1.0, 1e-12);
    const auto middle = shot.to_camera({0, 0, 0.3});
    EXPECT_GT(middle[2], 2.5);
    EXPECT_LT(std::hypot(middle[0], middle[1]), 0.5);
    // y points down: a point above the middle has a smaller y.
    EXPECT_LT(shot.to_camera({0, 0, 1.3})[1], middle[1]);
    const Vec3 centre = shot.centre();
    const auto origin = shot.to_camera({centre.x, centre.y, centre.z});
    EXPECT_NEAR(std::hypot(origin[0], origin[1], origin[2]), 0.0, 1e-5);
  }
  EXPECT_EQ(names.size(), 48u);
}

TEST(CaptureCamera, WiresAreOneToThreePixelsWideInTheDefaultCapture) {
  const CaptureOptions options;
  const Lens lens = make_lens(options);
  const Scene scene = build_scene(options.seed);
  size_t n_wires = 0;
  for (const Shot& shot : make_shots(options)) {
    for (const CapsuleGroup& group : scene.groups) {
      if (group.material != Material::Wire) continue;
      for (uint32_t i = group.begin; i < group.end; ++i) {
        const Capsule& capsule = scene.capsules[i];
        const auto at = shot.to_camera({capsule.from.x, capsule.from.y, capsule.from.z});
        const double width_px = 2 * static_cast<double>(capsule.radius) * lens.fx / at[2];
        const auto pixel = project(lens, at);
        if (pixel[0] < 0 || pixel[1] < 0 || pixel[0] > 640 || pixel[1] > 480) continue;
        EXPECT_GE(width_px, 0.85);
        EXPECT_LE(width_px, 3.05);
        ++n_wires;
      }
    }
  }
  EXPECT_GT(n_wires, 1000u);
}

TEST(CaptureCamera, ExposuresSpreadOverAboutOneAndAHalfStops) {
  CaptureOptions options;
  for (const Shot& shot : make_shots(options)) EXPECT_EQ(shot.ev, 0);
  options.exposure = true;
  double low = 9, high = -9;
  for (const Shot& shot : make_shots(options)) {
    low = std::min(low, shot.ev);
    high = std::max(high, shot.ev);
    EXPECT_NE(shot.white_balance[0], 1.0);
  }
  EXPECT_LT(low, -0.5);
  EXPECT_GE(low, -0.7);
  EXPECT_GT(high, 0.5);
  EXPECT_LE(high, 0.7);
}

}  // namespace
}  // namespace millrace::synth
