// SfM points: the sparse points and tracks that structure from motion could have found.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "synth/capture_camera.h"
#include "synth/render_view.h"
#include "synth/scene.h"

namespace millrace::synth {

/// A detected feature in one photograph; pixel centres at +0.5.
struct Observation {
  uint32_t view = 0;  // position in the list of shots
  double x = 0, y = 0;
  uint32_t slot = 0;  // position among the 2D points of that view
};

struct SfmPoint {
  std::array<double, 3> position = {};   // with noise
  std::array<double, 3> color_sum = {};  // of the photographs' pixels at the observations
  double error_px = 0;                   // mean reprojection error
  std::vector<Observation> track;        // at least three, by rising view

  std::array<uint8_t, 3> color() const;
};

/// The 2D points of one view in file order: index into the points, or kUnmatched.
struct Keypoint {
  double x = 0, y = 0;
  uint64_t point = 0;
};
inline constexpr uint64_t kUnmatched = ~uint64_t{0};

/// Up to options.n_points points on textured surfaces that at least three shots see; fewer where
/// the scene and the cameras do not allow as many. Position noise lies in a ball of 0.2 % of the
/// depth in the first shot, feature noise is 0.3 px.
std::vector<SfmPoint> find_points(const Scene& scene, const CaptureOptions& options,
                                  const Lens& lens, const std::vector<Shot>& shots);

/// The 2D points of every view, a fifth of them without a 3D point; fills the slots of the tracks.
std::vector<std::vector<Keypoint>> make_keypoints(const CaptureOptions& options,
                                                  std::vector<SfmPoint>& points);

/// Adds the colours that `pixels`, the photograph of `view`, has at that view's keypoints.
void add_colors(const Lens& lens, const ViewPixels& pixels, const std::vector<Keypoint>& keypoints,
                std::vector<SfmPoint>& points);

}  // namespace millrace::synth
