// Writing and reading cameras.json.
#include "io/cameras_json.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr double kMaxSide = 65536;        // pixels; larger images cannot be rendered anyway
constexpr double kOrthonormality = 1e-3;  // R R^T may be this far from the identity

// One entry of the file, with messages that name it.
class Entry {
 public:
  Entry(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  Error fail(std::string_view key, std::string_view what) const {
    return {ErrorCode::Dataset, fmt::format("{}, key \"{}\": {}", place_, key, what)};
  }

  bool has(const char* key) const { return json_.contains(key); }

  Result<double> number(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return fail(key, "is missing");
    return finite(key, *found);
  }

  Result<uint32_t> side(const char* key) const {
    MILLRACE_ASSIGN(const double value, number(key));
    if (value < 1 || value > kMaxSide || value != std::floor(value)) {
      return fail(key, fmt::format("{} is not a number of pixels", value));
    }
    return static_cast<uint32_t>(value);
  }

  Result<double> focal(const char* key) const {
    MILLRACE_ASSIGN(const double value, number(key));
    if (value <= 0) return fail(key, fmt::format("{} is not a focal length in pixels", value));
    return value;
  }

  Result<std::array<double, 3>> triple(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return fail(key, "is missing");
    return triple_of(key, *found);
  }

  Result<std::array<double, 9>> matrix(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return fail(key, "is missing");
    if (!found->is_array() || found->size() != 3) return fail(key, "is not three rows");
    std::array<double, 9> out = {};
    for (size_t row = 0; row < 3; ++row) {
      MILLRACE_ASSIGN(const auto values, triple_of(key, (*found)[row]));
      for (size_t column = 0; column < 3; ++column) out[3 * row + column] = values[column];
    }
    return out;
  }

  Result<std::string> name(const char* key, const std::string& fallback) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return fallback;
    if (!found->is_string() || found->get_ref<const std::string&>().empty()) {
      return fail(key, "is not a name");
    }
    const auto name = found->get<std::string>();
    // Renders are named after it: it must not lead out of the output folder.
    const fs::path path(name);
    bool escapes = path.is_absolute();
    for (const fs::path& part : path) escapes = escapes || part == "..";
    if (escapes) return fail(key, "must be a relative path without \"..\"");
    return name;
  }

 private:
  Result<double> finite(const char* key, const Json& value) const {
    if (!value.is_number()) return fail(key, "is not a number");
    const auto number = value.get<double>();
    if (!std::isfinite(number)) return fail(key, "is not finite");
    return number;
  }

  Result<std::array<double, 3>> triple_of(const char* key, const Json& value) const {
    if (!value.is_array() || value.size() != 3) return fail(key, "needs three numbers in a row");
    std::array<double, 3> out = {};
    for (size_t i = 0; i < 3; ++i) {
      MILLRACE_ASSIGN(out[i], finite(key, value[i]));
    }
    return out;
  }

  const Json& json_;
  std::string place_;
};

// Whether the row-major 3x3 matrix turns without scaling or mirroring.
bool is_rotation(const std::array<double, 9>& m) {
  for (size_t a = 0; a < 3; ++a) {
    for (size_t b = 0; b < 3; ++b) {
      double dot = 0;
      for (size_t k = 0; k < 3; ++k) dot += m[3 * a + k] * m[3 * b + k];
      if (std::abs(dot - (a == b ? 1.0 : 0.0)) > kOrthonormality) return false;
    }
  }
  const double determinant = m[0] * (m[4] * m[8] - m[5] * m[7]) -
                             m[1] * (m[3] * m[8] - m[5] * m[6]) +
                             m[2] * (m[3] * m[7] - m[4] * m[6]);
  return determinant > 0;
}

Result<NamedCamera> read_entry(const Entry& entry, const std::string& default_name) {
  NamedCamera out;
  Camera& camera = out.camera;
  MILLRACE_ASSIGN(out.name, entry.name("img_name", default_name));
  MILLRACE_ASSIGN(camera.width, entry.side("width"));
  MILLRACE_ASSIGN(camera.height, entry.side("height"));
  MILLRACE_ASSIGN(camera.fx, entry.focal("fx"));
  MILLRACE_ASSIGN(camera.fy, entry.focal("fy"));
  camera.cx = 0.5 * camera.width;
  camera.cy = 0.5 * camera.height;
  if (entry.has("cx")) {
    MILLRACE_ASSIGN(camera.cx, entry.number("cx"));
  }
  if (entry.has("cy")) {
    MILLRACE_ASSIGN(camera.cy, entry.number("cy"));
  }
  MILLRACE_ASSIGN(const auto position, entry.triple("position"));
  MILLRACE_ASSIGN(const auto rotation, entry.matrix("rotation"));
  if (!is_rotation(rotation)) {
    return entry.fail("rotation",
                      "is not a rotation (its rows are not orthonormal, or it mirrors)");
  }
  for (size_t row = 0; row < 3; ++row) {
    double shift = 0;
    for (size_t k = 0; k < 3; ++k) {
      camera.world_to_camera[4 * row + k] = rotation[3 * k + row];
      shift -= rotation[3 * k + row] * position[k];
    }
    camera.world_to_camera[4 * row + 3] = shift;
  }
  return out;
}

}  // namespace

Result<void> write_cameras_json(const fs::path& path, const std::vector<NamedCamera>& cameras) {
  // One camera a line: readable, and small differences stay small.
  std::string text = "[";
  for (size_t i = 0; i < cameras.size(); ++i) {
    const Camera& camera = cameras[i].camera;
    const auto& m = camera.world_to_camera;
    nlohmann::ordered_json entry;
    entry["id"] = i;
    entry["img_name"] = cameras[i].name;
    entry["width"] = camera.width;
    entry["height"] = camera.height;
    entry["position"] = camera_centre(camera);
    entry["rotation"] = {{m[0], m[4], m[8]}, {m[1], m[5], m[9]}, {m[2], m[6], m[10]}};
    entry["fx"] = camera.fx;
    entry["fy"] = camera.fy;
    entry["cx"] = camera.cx;
    entry["cy"] = camera.cy;
    text += i == 0 ? "\n" : ",\n";
    text += entry.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
  return write_file_atomically(path, text + "\n]\n");
}

Result<std::vector<NamedCamera>> read_cameras_json(const fs::path& path) {
  MILLRACE_ASSIGN(const std::string text, read_text_file(path));
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{}, byte {}: not JSON: {}", path.string(), error.byte, error.what())};
  }
  if (!json.is_array()) {
    return Error{ErrorCode::Dataset, fmt::format("{}: expected a list of cameras, found {}",
                                                 path.string(), json.type_name())};
  }
  std::vector<NamedCamera> cameras;
  cameras.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    std::string place = fmt::format("{}, entry {}", path.string(), i);
    if (!json[i].is_object()) {
      return Error{ErrorCode::Dataset, fmt::format("{}: is not an object", place)};
    }
    MILLRACE_ASSIGN(NamedCamera camera,
                    read_entry(Entry(json[i], std::move(place)), fmt::format("camera_{:05}", i)));
    cameras.push_back(std::move(camera));
  }
  return cameras;
}

}  // namespace millrace
