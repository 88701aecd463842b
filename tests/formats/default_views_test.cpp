// Tests of formats/default_views.cpp.
#include "formats/default_views.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/random_model.h"

namespace millrace {
namespace {

TEST(DefaultViews, LookAtTheMiddleOfTheModelFromAllSides) {
  GaussianCloud cloud = random_model(500, 0);
  for (size_t i = 0; i < cloud.means.size(); i += 3) cloud.means[i] += 100;
  const auto centre = model_centre(cloud);
  EXPECT_NEAR(centre[0], 100, 2);
  const auto cameras = ring_cameras(cloud, 4, 60, 40);
  ASSERT_EQ(cameras.size(), 4u);
  for (const NamedCamera& named : cameras) {
    const auto& m = named.camera.world_to_camera;
    for (size_t row = 0; row < 3; ++row) {
      double at = m[4 * row + 3];
      for (size_t k = 0; k < 3; ++k) at += m[4 * row + k] * centre[k];
      EXPECT_TRUE(row == 2 ? at > 3 : std::abs(at) < 1e-9) << row << " " << at;
    }
  }
  const auto a = camera_centre(cameras[0].camera), b = camera_centre(cameras[2].camera);
  EXPECT_NEAR(a[2] + b[2], 2 * centre[2], 1e-6);
  EXPECT_GT(near_plane_for(cameras, centre), 0);
}

}  // namespace
}  // namespace millrace
