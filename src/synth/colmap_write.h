// COLMAP model files (cameras, images, points3D) of the synthetic capture, binary or text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "synth/capture_camera.h"
#include "synth/sfm_points.h"

namespace millrace::synth {

/// The model to write; image and point ids are positions plus one.
struct ColmapModel {
  const Lens& lens;
  const std::vector<Shot>& shots;
  const std::vector<SfmPoint>& points;
  const std::vector<std::vector<Keypoint>>& keypoints;
};

/// File names (cameras.bin and so on) with their contents.
using ModelFiles = std::vector<std::pair<std::string, std::string>>;

ModelFiles colmap_binary(const ColmapModel& model);
ModelFiles colmap_text(const ColmapModel& model);

}  // namespace millrace::synth
