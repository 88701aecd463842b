// Dataset: what a capture holds once it has been read: views with pinhole cameras, and points.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace millrace {

/// A pinhole camera as trained: after rescaling to the image's size, undistortion and cropping.
/// Pixel centres are at +0.5; x right, y down, z forward.
struct Camera {
  uint32_t width = 0, height = 0;                                                 // pixels
  double fx = 0, fy = 0, cx = 0, cy = 0;                                          // pixels
  std::array<double, 12> world_to_camera = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};  // 3x4, row-major
};

/// The camera centre in world units: -R^T t.
std::array<double, 3> camera_centre(const Camera& camera);

enum class LensKind : uint8_t { Pinhole, OpenCv };

/// The camera as delivered, at the size of the image as it will be decoded (after -r or
/// --max-width):
/// x' = x (1 + k1 r^2 + k2 r^4) + 2 p1 x y + p2 (r^2 + 2 x^2), likewise y'.
struct Lens {
  LensKind kind = LensKind::Pinhole;
  uint32_t width = 0, height = 0;
  double fx = 0, fy = 0, cx = 0, cy = 0;
  double k1 = 0, k2 = 0, p1 = 0, p2 = 0;
};

/// One photograph.
struct View {
  std::string name;  // relative path as the capture names it; the sort key of the hold-out
  std::filesystem::path image_path;
  uint32_t index = 0;  // position among the sorted views that are usable
  bool held_out = false;
  uint32_t file_width = 0, file_height = 0;  // of the file on disk
  std::filesystem::path mask_path;           // empty: none
  uint32_t mask_width = 0, mask_height = 0;  // of the mask's file
  bool mask_from_alpha = false;              // the photograph's alpha channel is its mask
  Lens lens;                                 // at decode size
  Camera camera;  // at training size: lens undistorted, cropped to the valid rectangle
  uint32_t crop_x = 0,
           crop_y = 0;  // KeepFocal: training pixel (0, 0) is the lens's (crop_x, crop_y)
};

struct PointCloud {
  std::vector<float> positions;  // [P,3] world units
  std::vector<uint8_t> colors;   // [P,3]
  uint64_t count() const { return colors.size() / 3; }
};

/// Which pinhole a distorted image is resampled to (undistort.h has the details).
enum class UndistortTo : uint8_t {
  FillFrame,  // OpenCV's alpha = 0: the valid rectangle stretched to the frame; the focal length
              // follows
  KeepFocal,  // focal length and pixel grid kept; the frame cropped to the valid rectangle
};

struct DatasetOptions {
  std::string images;                    // image folder name or path; empty = find it
  int resize_factor = 0;                 // 1, 2, 4, 8; 0 = auto (1, limited by max_width)
  uint32_t max_width = 3840;             // longest side in pixels; 0 = no limit
  uint32_t test_every = 8;               // 0 = hold out none
  uint32_t test_fold = 0;                // index % test_every == test_fold is held out
  std::vector<std::string> test_images;  // if not empty: hold out exactly these names
  uint64_t init_num_points = 100000;     // without points, or with random_points
  bool random_points = false;
  uint64_t seed = 42;
  UndistortTo undistort_to = UndistortTo::FillFrame;
  bool use_masks = false;
  std::string masks;  // mask folder name or path; empty = find it
};

struct Dataset {
  std::filesystem::path root;
  std::string format;  // for people: "COLMAP binary (sparse/0)", "nerfstudio transforms.json", ...
  std::vector<View> views;  // sorted by name
  PointCloud points;
  bool points_are_random = false;
  std::vector<std::string> notes;     // what was chosen and why
  std::vector<std::string> warnings;  // what was skipped or looks wrong
};

/// Reads a capture: COLMAP (.bin preferred over .txt), or nerfstudio, Blender or instant-ngp
/// transforms JSON; `path` is its folder, or one JSON file. Opens every image's header (not its
/// pixels). Views whose image is missing or unreadable are skipped with a warning that counts and
/// names them. Errors: ErrorCode::Dataset, naming file and line or byte; ErrorCode::Usage for
/// options that cannot be met (an unknown --test-images name).
Result<Dataset> load_dataset(const std::filesystem::path& path, const DatasetOptions& options);

}  // namespace millrace
