// Fill points: only where most of what the photographs show has no point, and in front of their
// view.
#include "data/fill_points.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

View view_of_120_cells() {  // 12 x 10
  View view;
  view.camera.width = 120;
  view.camera.height = 100;
  view.camera.fx = view.camera.fy = 100;
  view.camera.cx = 60;
  view.camera.cy = 50;
  view.camera.world_to_camera = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
  return view;
}

// One point at depth 2 in the middle of each of the first `n` cells.
PointCloud points_in_cells(uint32_t n) {
  PointCloud points;
  for (uint32_t i = 0; i < n; ++i) {
    const float u = 10.0f * static_cast<float>(i % 12) + 5,
                v = 10.0f * static_cast<float>(i / 12) + 5;
    points.positions.insert(points.positions.end(), {(u - 60) / 50, (v - 50) / 50, 2});
    points.colors.insert(points.colors.end(), {9, 9, 9});
  }
  return points;
}

TEST(FillPoints, AreDrawnInEveryEmptyCellWhereMostAreEmpty) {
  const PointCloud fill =
      draw_fill_points({view_of_120_cells()}, points_in_cells(59), /*n_most=*/1000, /*seed=*/1);
  ASSERT_EQ(fill.count(), 61u);
  for (uint64_t i = 0; i < fill.count(); ++i) {
    const float* p = &fill.positions[3 * i];
    EXPECT_GE(p[2], 2.0f);
    EXPECT_LE(p[2], 16.0f);
    const float u = 100 * p[0] / p[2] + 60, v = 100 * p[1] / p[2] + 50;
    const auto cell = static_cast<uint32_t>(v / 10) * 12 + static_cast<uint32_t>(u / 10);
    EXPECT_GE(cell, 59u);
    EXPECT_LT(cell, 120u);
  }
}

TEST(FillPoints, AreNotDrawnWhereHalfOfTheCellsHavePoints) {
  EXPECT_EQ(draw_fill_points({view_of_120_cells()}, points_in_cells(60), 1000, 1).count(), 0u);
}

TEST(FillPoints, AreNoMoreThanAskedForAndNoneFromHeldOutViews) {
  EXPECT_EQ(draw_fill_points({view_of_120_cells()}, points_in_cells(10), 25, 1).count(), 25u);
  View held_out = view_of_120_cells();
  held_out.held_out = true;
  EXPECT_EQ(draw_fill_points({held_out}, points_in_cells(10), 25, 1).count(), 0u);
}

}  // namespace
}  // namespace millrace
