// The parts of the COLMAP reader: a model in memory, and its binary and text parsers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/camera_model.h"
#include "data/dataset.h"

namespace millrace {

struct ColmapCamera {
  uint32_t id = 0;
  const CameraModel* model = nullptr;
  uint64_t width = 0, height = 0;
  std::vector<double> params;
  std::string where;  // file and line or byte, for messages
};

struct ColmapImage {
  uint32_t camera_id = 0;
  std::string name;
  std::optional<std::array<double, 12>> world_to_camera;  // none: the pose is not usable
  std::string where;
};

struct ColmapModel {
  std::vector<ColmapCamera> cameras;
  std::vector<ColmapImage> images;
  PointCloud points;
  std::vector<std::string> notes;
};

Result<void> parse_cameras_binary(const std::filesystem::path& path, ColmapModel& model);
Result<void> parse_images_binary(const std::filesystem::path& path, ColmapModel& model);
Result<void> parse_points_binary(const std::filesystem::path& path, ColmapModel& model);
Result<void> parse_cameras_text(const std::filesystem::path& path, ColmapModel& model);
Result<void> parse_images_text(const std::filesystem::path& path, ColmapModel& model);
Result<void> parse_points_text(const std::filesystem::path& path, ColmapModel& model);

/// How many images the model in `folder` holds, from the head of its file; 0 if it cannot be told.
uint64_t count_colmap_images(const std::filesystem::path& folder);

}  // namespace millrace
