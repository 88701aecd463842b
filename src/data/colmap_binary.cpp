// COLMAP's binary model files: cameras.bin, images.bin, points3D.bin (little endian).
#include <fmt/format.h>

#include "base/file.h"
#include "data/byte_reader.h"
#include "data/capture.h"
#include "data/colmap.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<void> parse_cameras_binary(const fs::path& path, ColmapModel& model) {
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  ByteReader reader(bytes, path);
  MILLRACE_ASSIGN(const uint64_t count, reader.read_count(24 + 8, "cameras"));
  model.cameras.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    MILLRACE_TRY(reader.need(24, fmt::format("camera {} of {}", i + 1, count)));
    ColmapCamera camera;
    camera.where = fmt::format("{}: byte {}", path.string(), reader.offset());
    camera.id = reader.get<uint32_t>();
    const int32_t model_id = reader.get<int32_t>();
    camera.model = find_camera_model(model_id);
    if (!camera.model) {
      return reader.error(fmt::format("camera {} has the model id {}, which no COLMAP model has",
                                      camera.id, model_id));
    }
    camera.width = reader.get<uint64_t>();
    camera.height = reader.get<uint64_t>();
    MILLRACE_TRY(reader.need(8ull * camera.model->n_params,
                             fmt::format("the parameters of camera {}", camera.id)));
    for (uint32_t k = 0; k < camera.model->n_params; ++k)
      camera.params.push_back(reader.get<double>());
    model.cameras.push_back(std::move(camera));
  }
  return {};
}

Result<void> parse_images_binary(const fs::path& path, ColmapModel& model) {
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  ByteReader reader(bytes, path);
  MILLRACE_ASSIGN(const uint64_t count, reader.read_count(64 + 1 + 8, "images"));
  model.images.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string what = fmt::format("image {} of {}", i + 1, count);
    MILLRACE_TRY(reader.need(64, what));
    ColmapImage image;
    image.where = fmt::format("{}: byte {}", path.string(), reader.offset());
    reader.skip(4);  // the image's id: nothing here refers to it
    std::array<double, 4> q;
    std::array<double, 3> t;
    for (double& value : q) value = reader.get<double>();
    for (double& value : t) value = reader.get<double>();
    image.camera_id = reader.get<uint32_t>();
    image.world_to_camera = pose_from_quaternion(q, t);
    MILLRACE_ASSIGN(image.name, reader.read_string("the name of " + what));
    MILLRACE_ASSIGN(const uint64_t n_points, reader.read_count(24, "2D points of " + what));
    reader.skip(24 * n_points);
    model.images.push_back(std::move(image));
  }
  return {};
}

Result<void> parse_points_binary(const fs::path& path, ColmapModel& model) {
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  ByteReader reader(bytes, path);
  MILLRACE_ASSIGN(const uint64_t count, reader.read_count(51, "points"));
  model.points.positions.reserve(3 * count);
  model.points.colors.reserve(3 * count);
  for (uint64_t i = 0; i < count; ++i) {
    MILLRACE_TRY(reader.need(51, fmt::format("point {} of {}", i + 1, count)));
    reader.skip(8);
    for (int k = 0; k < 3; ++k) {
      model.points.positions.push_back(static_cast<float>(reader.get<double>()));
    }
    for (int k = 0; k < 3; ++k) model.points.colors.push_back(reader.get<uint8_t>());
    reader.skip(8);
    MILLRACE_ASSIGN(
        const uint64_t length,
        reader.read_count(8, fmt::format("observations of point {} of {}", i + 1, count)));
    reader.skip(8 * length);
  }
  return {};
}

}  // namespace millrace
