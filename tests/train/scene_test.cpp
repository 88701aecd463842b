// From a dataset to camera records and the Gaussians to begin with.
#include "train/scene.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

// A square grid of points with distance `d`, colours counting up.
Dataset grid(uint32_t side, float d) {
  Dataset dataset;
  for (uint32_t i = 0; i < side * side; ++i) {
    dataset.points.positions.insert(
        dataset.points.positions.end(),
        {d * static_cast<float>(i % side), d * static_cast<float>(i / side), 1.0f});
    for (uint32_t c = 0; c < 3; ++c) {
      dataset.points.colors.push_back(static_cast<uint8_t>((i + 100 * c) % 256));
    }
  }
  return dataset;
}

TEST(InitialCloud, ScalesFollowTheThreeNearestNeighbours) {
  TrainOptions options;
  options.init_scaling = 0.1;
  const GaussianCloud cloud = initial_cloud(grid(8, 0.5f), options, nullptr);
  ASSERT_EQ(cloud.count(), 64u);
  // Inside the grid the three nearest are 0.5 away; at a corner two are 0.5 and one is 0.5 sqrt(2)
  // away.
  const double inside = std::log(0.1 * 0.5);
  const double corner = std::log(0.1 * std::sqrt((0.25 + 0.25 + 0.5) / 3));
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(cloud.log_scales[3 * 27 + k], inside, 1e-5);
    EXPECT_NEAR(cloud.log_scales[3 * 0 + k], corner, 1e-5);
    EXPECT_NEAR(cloud.log_scales[3 * 63 + k], corner, 1e-5);
  }
}

TEST(InitialCloud, HasTheAnchorsOpacityColourAndRotation) {
  TrainOptions options;
  options.init_opacity = 0.25;
  options.sh_degree = 2;
  const Dataset dataset = grid(4, 1);
  const GaussianCloud cloud = initial_cloud(dataset, options, nullptr);
  EXPECT_EQ(cloud.sh_degree, 2);
  EXPECT_EQ(cloud.sh_rest, std::vector<float>(16 * 24));
  EXPECT_EQ(cloud.means, dataset.points.positions);
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(cloud.opacities[i], std::log(0.25 / 0.75), 1e-6);
    EXPECT_EQ(cloud.rotations[4 * i], 1.0f);
    EXPECT_EQ(cloud.rotations[4 * i + 1], 0.0f);
    for (uint32_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(0.5 + 0.28209479177387814 * cloud.sh0[3 * i + c],
                  dataset.points.colors[3 * i + c] / 255.0, 1e-6);
    }
  }
}

TEST(InitialCloud, ACapBelowThePointsTakesThemEvenlyAndSaysSo) {
  TrainOptions options;
  options.max_cap = 16;
  options.init_scaling = 0.1;
  std::string note;
  const Dataset dataset = grid(8, 1);
  const GaussianCloud cloud = initial_cloud(dataset, options, &note);
  ASSERT_EQ(cloud.count(), 16u);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(cloud.means[3 * i], dataset.points.positions[3 * 4 * i]);
    EXPECT_EQ(cloud.means[3 * i + 1], dataset.points.positions[3 * 4 * i + 1]);
  }
  // The scale is that of the points taken: every fourth of a row, one and four apart.
  EXPECT_NEAR(cloud.log_scales[3 * 6], std::log(0.1 * std::sqrt((1 + 1 + 4) / 3.0)), 1e-5);
  EXPECT_NE(note.find("16 of 64"), std::string::npos) << note;
}

TEST(InitialCloud, WithRoomForAllThereIsNothingToNote) {
  std::string note;
  initial_cloud(grid(8, 1), TrainOptions(), &note);
  EXPECT_EQ(note, "");
}

TEST(CameraRecord, HoldsThePoseTheCentreAndTheLens) {
  const Camera& camera = tiny_dataset().views[3].camera;
  const CameraRecord record = make_camera_record(camera, 0.25);
  EXPECT_EQ(record.near_plane, 0.25f);
  EXPECT_EQ(record.width, 64u);
  EXPECT_EQ(record.height, 48u);
  EXPECT_FLOAT_EQ(record.fx, static_cast<float>(camera.fx));
  EXPECT_FLOAT_EQ(record.cy, static_cast<float>(camera.cy));
  for (int i = 0; i < 3; ++i) {
    // The centre is where camera coordinates are zero.
    double x = record.translation[i];
    for (int j = 0; j < 3; ++j) x += double{record.rotation[3 * i + j]} * record.centre[j];
    EXPECT_NEAR(x, 0, 1e-5);
  }
}

}  // namespace
}  // namespace millrace::test
