// What a capture file says before its images are opened: the common ground of the COLMAP and JSON
// readers.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace millrace {

/// Positions beyond it are taken for damage: they overflow single precision once squared.
inline constexpr double kFarthest = 1e15;  // world units

/// One photograph as the capture describes it.
struct RawView {
  std::string name;
  Lens lens;           // at the size the capture states; width 0 = the image file's size
  double angle_x = 0;  // horizontal field of view in radians; used when lens.fx is 0
  std::array<double, 12> world_to_camera = {};
  bool in_test_file = false;  // listed by transforms_test.json
};

/// A capture as read from its model files.
struct RawCapture {
  std::string format;
  std::filesystem::path root;        // the folder of the capture
  std::filesystem::path image_base;  // names are relative to it, unless options.images wins
  bool names_hold_folder = false;  // names start with the image folder ("images/a.jpg"), as in JSON
  bool has_test_file = false;
  std::vector<RawView> views;
  PointCloud points;
  std::filesystem::path points_hint;  // a PLY that the capture names
  std::vector<std::string> notes, warnings;
};

/// A pose as world-to-camera from a quaternion (w, x, y, z; any length) and a translation; none if
/// a number is not finite, the camera is beyond kFarthest, or the quaternion has no direction.
std::optional<std::array<double, 12>> pose_from_quaternion(const std::array<double, 4>& q,
                                                           const std::array<double, 3>& t);

/// Whether a folder of `root` (or `root` itself) holds a COLMAP model; the folder, or none. Says in
/// `notes` what was chosen among several.
std::optional<std::filesystem::path> find_colmap_model(const std::filesystem::path& root,
                                                       std::vector<std::string>& notes);
/// Reads the COLMAP model in `folder` of the capture `root`. Errors: Dataset, naming file and line
/// or byte.
Result<RawCapture> read_colmap(const std::filesystem::path& root,
                               const std::filesystem::path& folder);

/// The transforms JSON of `root` (transforms.json or transforms_train.json), or none.
std::optional<std::filesystem::path> find_transforms(const std::filesystem::path& root);
/// Reads it, and transforms_test.json beside a transforms_train.json. Errors: Dataset, naming file
/// and frame.
Result<RawCapture> read_transforms(const std::filesystem::path& file);

/// "a, b, c and 4 more": at most five names.
std::string list_names(const std::vector<std::string>& names);

}  // namespace millrace
