// COLMAP's text model files: cameras.txt, images.txt, points3D.txt.
#include <fmt/format.h>

#include "base/file.h"
#include "data/capture.h"
#include "data/colmap.h"
#include "data/text_fields.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Walks the lines of a text file and says where it is.
struct LineReader {
  const fs::path& path;
  std::string_view rest;
  uint64_t number = 0;
  std::string_view line;

  /// The next line of any kind but a comment.
  bool next() {
    while (take_line(rest, line)) {
      ++number;
      line = trim(line);
      if (line.empty() || line.front() != '#') return true;
    }
    return false;
  }
  /// The next line that is neither blank nor a comment.
  bool next_filled() {
    while (next()) {
      if (!line.empty()) return true;
    }
    return false;
  }
  std::string where() const { return fmt::format("{}: line {}", path.string(), number); }
  Error error(std::string_view what) const {
    const std::string_view shown = line.substr(0, 80);
    return {ErrorCode::Dataset,
            fmt::format("{}: {} in \"{}{}\"", where(), what, shown, line.size() > 80 ? "..." : "")};
  }
};

template <class T>
Result<T> take_integer(std::string_view& line, const LineReader& reader, const char* what) {
  const std::string_view field = take_field(line);
  const auto value = parse_integer<T>(field);
  if (!value) return reader.error(fmt::format("{} expected, found '{}'", what, field));
  return *value;
}

Result<double> take_double(std::string_view& line, const LineReader& reader, const char* what) {
  const std::string_view field = take_field(line);
  const auto value = parse_double(field);
  if (!value) return reader.error(fmt::format("{} expected, found '{}'", what, field));
  return *value;
}

/// Whether a line that follows an image is that image's 2D points ("x y id" repeated) rather than
/// the next image: some exporters leave out the empty line of images without 2D points.
bool is_points_line(std::string_view line) {
  std::string_view rest = line;
  std::string_view field;
  for (int i = 0; i < 10; ++i) {
    field = take_field(rest);
    if (field.empty()) return true;
  }
  if (!parse_double(field)) return false;
  uint64_t n_fields = 10;
  while (!take_field(rest).empty()) ++n_fields;
  return n_fields % 3 == 0;
}

}  // namespace

Result<void> parse_cameras_text(const fs::path& path, ColmapModel& model) {
  MILLRACE_ASSIGN(const std::string text, read_text_file(path));
  LineReader reader{path, text, 0, {}};
  while (reader.next_filled()) {
    std::string_view line = reader.line;
    ColmapCamera camera;
    camera.where = reader.where();
    MILLRACE_ASSIGN(camera.id, take_integer<uint32_t>(line, reader, "a camera id"));
    const std::string_view name = take_field(line);
    camera.model = find_camera_model(name);
    if (!camera.model) {
      return reader.error(
          fmt::format("camera {} has the model '{}', which is no COLMAP model", camera.id, name));
    }
    MILLRACE_ASSIGN(camera.width, take_integer<uint64_t>(line, reader, "a width"));
    MILLRACE_ASSIGN(camera.height, take_integer<uint64_t>(line, reader, "a height"));
    while (!trim(line).empty()) {
      MILLRACE_ASSIGN(const double value, take_double(line, reader, "a camera parameter"));
      camera.params.push_back(value);
    }
    // RealityScan leaves out trailing coefficients of FULL_OPENCV.
    const bool padded =
        camera.model->id == 6 && camera.params.size() >= 8 && camera.params.size() < 12;
    if (padded) camera.params.resize(12);
    if (camera.params.size() != camera.model->n_params) {
      return reader.error(fmt::format("camera {}: {} takes {} parameters, found {}", camera.id,
                                      name, camera.model->n_params, camera.params.size()));
    }
    model.cameras.push_back(std::move(camera));
  }
  return {};
}

Result<void> parse_images_text(const fs::path& path, ColmapModel& model) {
  MILLRACE_ASSIGN(const std::string text, read_text_file(path));
  LineReader reader{path, text, 0, {}};
  uint64_t n_omitted = 0;
  bool more = reader.next_filled();
  while (more) {
    std::string_view line = reader.line;
    ColmapImage image;
    image.where = reader.where();
    MILLRACE_TRY(take_integer<uint32_t>(line, reader, "an image id"));
    std::array<double, 4> q;
    std::array<double, 3> t;
    for (double& value : q) {
      MILLRACE_ASSIGN(value, take_double(line, reader, "a quaternion"));
    }
    for (double& value : t) {
      MILLRACE_ASSIGN(value, take_double(line, reader, "a translation"));
    }
    MILLRACE_ASSIGN(image.camera_id, take_integer<uint32_t>(line, reader, "a camera id"));
    image.name = trim(line);
    if (image.name.empty()) return reader.error("the image has no name");
    image.world_to_camera = pose_from_quaternion(q, t);
    model.images.push_back(std::move(image));

    more = reader.next();
    if (more && is_points_line(reader.line)) {
      more = reader.next_filled();
    } else if (more) {
      ++n_omitted;
    }
  }
  if (n_omitted > 0) {
    model.notes.push_back(fmt::format("{} leaves out the line of 2D points after {} of its images",
                                      path.filename().string(), n_omitted));
  }
  return {};
}

Result<void> parse_points_text(const fs::path& path, ColmapModel& model) {
  MILLRACE_ASSIGN(const std::string text, read_text_file(path));
  LineReader reader{path, text, 0, {}};
  while (reader.next_filled()) {
    std::string_view line = reader.line;
    MILLRACE_TRY(take_integer<uint64_t>(line, reader, "a point id"));
    for (int k = 0; k < 3; ++k) {
      MILLRACE_ASSIGN(const double value, take_double(line, reader, "a coordinate"));
      model.points.positions.push_back(static_cast<float>(value));
    }
    for (int k = 0; k < 3; ++k) {
      MILLRACE_ASSIGN(const uint8_t value,
                      take_integer<uint8_t>(line, reader, "a colour (0 to 255)"));
      model.points.colors.push_back(value);
    }
  }
  return {};
}

}  // namespace millrace
