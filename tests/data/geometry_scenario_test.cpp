// Scene scale, neighbour distances and random points: all must follow the world's unit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/camera_model.h"
#include "data/neighbours.h"
#include "data/random_points.h"
#include "data/scene_scale.h"

namespace millrace::test {
namespace {

/// `n` cameras on a hemisphere of radius 4 that look at the origin, in a world scaled by `unit`,
/// turned by `turn` about the z axis and moved by (0, shift, 0).
std::vector<View> hemisphere(int n, double unit = 1, double turn = 0, double shift = 0) {
  std::vector<View> views;
  for (int i = 0; i < n; ++i) {
    const double height = (i + 0.5) / n, angle = 2.39996 * i, flat = std::sqrt(1 - height * height);
    const double c[3] = {4 * flat * std::cos(angle), 4 * flat * std::sin(angle), 4 * height};
    const double z[3] = {-c[0] / 4, -c[1] / 4, -c[2] / 4};  // viewing direction
    const double x[3] = {-std::sin(angle), std::cos(angle), 0};
    const double y[3] = {z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2],
                         z[0] * x[1] - z[1] * x[0]};
    View view;
    view.index = static_cast<uint32_t>(i);
    view.camera = {400, 400, 555, 555, 200, 200, {}};
    int row = 0;
    for (const auto* axis : {x, y, z}) {
      auto* m = &view.camera.world_to_camera[4 * row++];
      m[0] = std::cos(turn) * axis[0] - std::sin(turn) * axis[1];
      m[1] = std::sin(turn) * axis[0] + std::cos(turn) * axis[1];
      m[2] = axis[2];
      m[3] = -unit * (axis[0] * c[0] + axis[1] * c[1] + axis[2] * c[2]) - m[1] * shift;
    }
    views.push_back(view);
  }
  return views;
}

TEST(RandomPoints, MostAreSeenByManyCamerasOfAnObjectCapture) {
  const auto views = hemisphere(40);
  const PointCloud cloud = draw_points_in_frusta(views, 4000, 42);
  ASSERT_EQ(cloud.count(), 4000u);
  int n_well_seen = 0, n_near = 0;
  for (size_t i = 0; i < cloud.count(); ++i) {
    const float* p = &cloud.positions[3 * i];
    int n_seen = 0;
    for (const View& view : views) {
      const auto& m = view.camera.world_to_camera;
      const double z = m[8] * p[0] + m[9] * p[1] + m[10] * p[2] + m[11];
      const double u = 555 * (m[0] * p[0] + m[1] * p[1] + m[2] * p[2] + m[3]) / z + 200;
      const double v = 555 * (m[4] * p[0] + m[5] * p[1] + m[6] * p[2] + m[7]) / z + 200;
      n_seen += z > 0 && u >= 0 && u <= 400 && v >= 0 && v <= 400 ? 1 : 0;
    }
    n_well_seen += n_seen >= 10 ? 1 : 0;
    n_near += std::hypot(p[0], p[1], p[2]) < 2 ? 1 : 0;
  }
  EXPECT_GT(n_well_seen, 3600 - 40);
  EXPECT_GT(n_near, 2000);
}

TEST(RandomPoints, MovingTurningAndScalingTheWorldMovesThePoints) {
  const PointCloud base = draw_points_in_frusta(hemisphere(24), 1000, 7);
  const double turn = 0.7;
  const PointCloud other = draw_points_in_frusta(hemisphere(24, 100, turn, 30), 1000, 7);
  EXPECT_EQ(base.colors, other.colors);
  for (size_t i = 0; i < base.count(); ++i) {
    const float* p = &base.positions[3 * i];
    const double expected[3] = {100 * (std::cos(turn) * p[0] - std::sin(turn) * p[1]),
                                100 * (std::sin(turn) * p[0] + std::cos(turn) * p[1]) + 30,
                                100 * p[2]};
    for (int k = 0; k < 3; ++k) ASSERT_NEAR(other.positions[3 * i + k], expected[k], 2e-2) << i;
  }
}

TEST(RandomPoints, SeedsDifferAndRunsDoNot) {
  const auto views = hemisphere(8);
  const auto a = draw_points_in_frusta(views, 100, 1), b = draw_points_in_frusta(views, 100, 1);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_NE(a.positions, draw_points_in_frusta(views, 100, 2).positions);
}

TEST(RandomPoints, OneCameraAndParallelCamerasWorkToo) {
  auto views = hemisphere(1);
  for (const float v : draw_points_in_frusta(views, 50, 1).positions) EXPECT_TRUE(std::isfinite(v));
  views = {views[0], views[0], views[0]};
  views[1].camera.world_to_camera[3] += 1;
  views[2].camera.world_to_camera[3] += 2;
  for (const float v : draw_points_in_frusta(views, 50, 1).positions) EXPECT_TRUE(std::isfinite(v));
}

TEST(SceneScale, IsFreeOfTheUnitAndItsNormaliserFollowsIt) {
  Dataset a, b;
  a.views = hemisphere(30);
  b.views = hemisphere(30, 10, 0.3, 5);
  const SceneScale s = scene_scale(a), t = scene_scale(b);
  EXPECT_NEAR(t.normaliser, 10 * s.normaliser, 1e-9);
  EXPECT_NEAR(t.scene_scale, s.scene_scale, 1e-9);
  EXPECT_GT(s.scene_scale, 1.1);
}

TEST(SceneScale, OneCameraGivesNoDistanceToGoBy) {
  Dataset dataset;
  dataset.views = hemisphere(1, 1e4);
  EXPECT_EQ(scene_scale(dataset).normaliser, 1);
  EXPECT_EQ(scene_scale(dataset).scene_scale, 1.1);
  EXPECT_EQ(scene_scale({}).normaliser, 1);
}

TEST(Neighbours, AgreeWithAllPairs) {
  std::vector<float> xyz;
  for (uint32_t i = 0; i < 300; ++i)
    xyz.push_back(static_cast<float>((i * 2654435761u) >> 8) / 1e6f);
  const auto fast = mean_square_distance_to_3_nearest(xyz);
  for (size_t i = 0; i < 100; ++i) {
    std::vector<double> squares;
    for (size_t j = 0; j < 100; ++j) {
      double sum = 0;
      for (int k = 0; k < 3; ++k) sum += std::pow(double{xyz[3 * i + k]} - xyz[3 * j + k], 2);
      if (i != j) squares.push_back(sum);
    }
    std::sort(squares.begin(), squares.end());
    const double expected = (squares[0] + squares[1] + squares[2]) / 3;
    EXPECT_NEAR(fast[i], expected, 1e-5 * expected);
  }
}

TEST(Neighbours, FollowTheUnitFromTinyToHuge) {
  std::vector<float> xyz;
  for (uint32_t i = 0; i < 90; ++i)
    xyz.push_back(static_cast<float>((i * 2654435761u) >> 20) / 100.0f);
  const auto base = mean_square_distance_to_3_nearest(xyz);
  for (const float unit : {1e-12f, 10.0f, 1e12f}) {
    std::vector<float> scaled = xyz;
    for (float& v : scaled) v *= unit;
    const auto other = mean_square_distance_to_3_nearest(scaled);
    for (size_t i = 0; i < base.size(); ++i) {
      EXPECT_NEAR(other[i] / (double{unit} * unit), base[i], 1e-4 * base[i]);
    }
  }
}

TEST(Neighbours, DuplicatesGetTheMedianAndNothingIsZero) {
  std::vector<float> xyz;
  for (int i = 0; i < 20; ++i) xyz.insert(xyz.end(), {static_cast<float>(i), 0, 0});
  for (int i = 0; i < 5; ++i) xyz.insert(xyz.end(), {7, 0, 0});
  for (const float value : mean_square_distance_to_3_nearest(xyz)) {
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_GT(value, 0.5f);
  }
  EXPECT_EQ(mean_square_distance_to_3_nearest(std::vector<float>{1, 2, 3}), std::vector<float>{1});
  EXPECT_EQ(mean_square_distance_to_3_nearest(std::vector<float>(30, 5.0f)),
            std::vector<float>(10, 1));
  EXPECT_EQ(mean_square_distance_to_3_nearest(std::vector<float>{0, 0, 0, 3, 0, 0}),
            (std::vector<float>{9, 9}));
  EXPECT_TRUE(mean_square_distance_to_3_nearest({}).empty());
}

TEST(CameraModel, EachUsableModelMapsItsParameters) {
  const auto lens = [](const char* name, std::vector<double> params) {
    return make_lens(*find_camera_model(std::string_view(name)), params, 100, 80, "test")
        .or_raise();
  };
  EXPECT_EQ(lens("SIMPLE_PINHOLE", {9, 1, 2}).fy, 9);
  EXPECT_EQ(lens("PINHOLE", {9, 8, 1, 2}).cy, 2);
  EXPECT_EQ(lens("SIMPLE_RADIAL", {9, 1, 2, 0.1}).k1, 0.1);
  EXPECT_EQ(lens("SIMPLE_RADIAL", {9, 1, 2, 0}).kind, LensKind::Pinhole);
  EXPECT_EQ(lens("RADIAL", {9, 1, 2, 0.1, 0.2}).k2, 0.2);
  const Lens opencv = lens("OPENCV", {9, 8, 1, 2, 0.1, 0.2, 0.3, 0.4});
  EXPECT_EQ(opencv.p1, 0.3);
  EXPECT_EQ(opencv.p2, 0.4);
  EXPECT_EQ(opencv.kind, LensKind::OpenCv);
  EXPECT_EQ(lens("FOV", {9, 8, 1, 2, 0}).kind, LensKind::Pinhole);
  EXPECT_FALSE(make_lens(*find_camera_model(6), std::vector<double>(12, 1.0), 100, 80, "test"));
  EXPECT_FALSE(make_lens(*find_camera_model(1), std::vector<double>{0, 8, 1, 2}, 100, 80, "test"));
  EXPECT_FALSE(
      make_lens(*find_camera_model(1), std::vector<double>{9, 8, 1, 2}, 70000, 80, "test"));
}

}  // namespace
}  // namespace millrace::test
