// Tests of sparse points: tracks, visibility, reprojection and keypoints.
#include "synth/sfm_points.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "synth/scene.h"

namespace millrace::synth {
namespace {

struct Found {
  CaptureOptions options;
  Lens lens;
  Scene scene;
  std::vector<Shot> shots;
  std::vector<SfmPoint> points;
};

Found find(bool distortion, bool masks) {
  CaptureOptions options;
  options.n_views = 16;
  options.n_points = 800;
  options.distortion = distortion;
  options.masks = masks;
  Found found{options, make_lens(options), build_scene(options.seed), make_shots(options), {}};
  found.points = find_points(found.scene, options, found.lens, found.shots);
  return found;
}

TEST(SfmPoints, PointsReprojectWithinTwoPixelsOfTheirFeatures) {
  for (const bool distortion : {false, true}) {
    const Found found = find(distortion, false);
    ASSERT_EQ(found.points.size(), 800u);
    double sum = 0, n = 0, n_far = 0;
    for (const SfmPoint& point : found.points) {
      ASSERT_GE(point.track.size(), 3u);
      double own = 0;
      for (const Observation& seen : point.track) {
        const auto at = project(found.lens, found.shots[seen.view].to_camera(point.position));
        const double error = std::hypot(at[0] - seen.x, at[1] - seen.y);
        own += error / static_cast<double>(point.track.size());
        n_far += error > 2 ? 1 : 0;
        n += 1;
        EXPECT_LT(error, 5.0);
      }
      EXPECT_NEAR(own, point.error_px, 1e-9);
      sum += own;
    }
    EXPECT_LT(n_far / n, 0.03);
    const double mean = sum / 800;
    EXPECT_GT(mean, 0.3);  // there is noise
    EXPECT_LT(mean, 1.2);
  }
}

TEST(SfmPoints, FeaturesLieOnVisibleTexturedSurfacesAndNeverOnTheDistractor) {
  const Found found = find(false, true);
  // Seen through the noise of 0.2 %, most rays end at the point and hardly any at the distractor.
  double n = 0, at_point = 0, at_figure = 0;
  for (const SfmPoint& point : found.points) {
    for (const Observation& seen : point.track) {
      const Shot& shot = found.shots[seen.view];
      const auto figure = build_distractor(found.options.seed, seen.view, shot.centre());
      const auto d = shot.to_camera(point.position);
      const double distance = std::hypot(d[0], d[1], d[2]);
      const Hit hit =
          found.scene.trace({shot.centre(), normalize(shot.to_world(d[0], d[1], d[2]))}, figure);
      n += 1;
      at_figure += hit.distractor ? 1 : 0;
      at_point += std::abs(static_cast<double>(hit.distance) - distance) < 0.03 * distance ? 1 : 0;
    }
  }
  EXPECT_GT(at_point / n, 0.95);
  EXPECT_LT(at_figure / n, 0.01);
}

TEST(SfmPoints, KeypointsAndTracksNameEachOther) {
  Found found = find(false, false);
  const auto keypoints = make_keypoints(found.options, found.points);
  ASSERT_EQ(keypoints.size(), 16u);
  size_t n_matched = 0, n_unmatched = 0, n_track = 0;
  for (size_t i = 0; i < found.points.size(); ++i) {
    for (const Observation& seen : found.points[i].track) {
      ASSERT_LT(seen.slot, keypoints[seen.view].size());
      EXPECT_EQ(keypoints[seen.view][seen.slot].point, i);
      EXPECT_EQ(keypoints[seen.view][seen.slot].x, seen.x);
      ++n_track;
    }
  }
  for (const auto& view : keypoints) {
    for (const Keypoint& keypoint : view) {
      (keypoint.point == kUnmatched ? n_unmatched : n_matched) += 1;
      EXPECT_GE(keypoint.x, 0);
      EXPECT_LT(keypoint.x, 640);
    }
  }
  EXPECT_EQ(n_matched, n_track);
  EXPECT_GT(n_unmatched, n_matched / 5);
}

}  // namespace
}  // namespace millrace::synth
