// transforms.json in its three dialects: nerfstudio, Blender (train/test/val files) and
// instant-ngp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "data/camera_model.h"
#include "data/capture.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Python writes NaN and Infinity, which JSON does not have: they become null, outside strings.
void replace_non_finite(std::string& text) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && (text[i] == 'N' || text[i] == 'I' || text[i] == '-')) {
      for (const std::string_view word : {"NaN", "-NaN", "Infinity", "-Infinity"}) {
        if (text.compare(i, word.size(), word) != 0) continue;
        // An empty string is no number either, and the same length keeps byte positions right.
        text.replace(i, word.size(), "\"\"" + std::string(word.size() - 2, ' '));
        break;
      }
    }
  }
}

Result<Json> parse_json(const fs::path& path) {
  MILLRACE_ASSIGN(std::string text, read_text_file(path));
  replace_non_finite(text);
  try {
    return Json::parse(text, nullptr, true, /*ignore_comments=*/true);
  } catch (const Json::parse_error& e) {
    const size_t upto = std::min<size_t>(e.byte, text.size());
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(upto), '\n');
    return Error{ErrorCode::Dataset, fmt::format("{}: line {} (byte {}): not valid JSON: {}",
                                                 path.string(), line, e.byte, e.what())};
  } catch (const Json::exception& e) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{}: not valid JSON: {}", path.string(), e.what())};
  }
}

/// The number at `key` of the frame, else of the root, else `fallback`. Not a number: NaN.
double number_of(const Json& frame, const Json& root, const char* key, double fallback) {
  for (const Json* object : {&frame, &root}) {
    const auto found = object->find(key);
    if (found == object->end()) continue;
    return found->is_number() ? found->get<double>() : std::nan("");
  }
  return fallback;
}

std::string text_of(const Json& frame, const Json& root, const char* key) {
  for (const Json* object : {&frame, &root}) {
    const auto found = object->find(key);
    if (found != object->end() && found->is_string()) return found->get<std::string>();
  }
  return "";
}

/// World-to-camera in COLMAP's axes from a camera-to-world matrix in OpenGL's; none if it is no
/// pose.
std::optional<std::array<double, 12>> pose_of(const Json& frame) {
  const auto matrix = frame.find("transform_matrix");
  if (matrix == frame.end() || !matrix->is_array() || matrix->size() < 3) return std::nullopt;
  double m[3][4];
  for (size_t r = 0; r < 3; ++r) {
    const Json& row = (*matrix)[r];
    if (!row.is_array() || row.size() < 4) return std::nullopt;
    for (size_t c = 0; c < 4; ++c) {
      if (!row[c].is_number()) return std::nullopt;
      m[r][c] = row[c].get<double>();
      if (!(std::abs(m[r][c]) <= kFarthest)) return std::nullopt;
    }
  }
  // Columns 1 and 2 are flipped: OpenGL looks along -z with y up, COLMAP along +z with y down.
  // Exporters that scale the world may leave the scale in the rotation: each axis is brought to
  // length 1.
  std::array<double, 12> pose;
  for (int axis = 0; axis < 3; ++axis) {
    const double length =
        std::sqrt(m[0][axis] * m[0][axis] + m[1][axis] * m[1][axis] + m[2][axis] * m[2][axis]);
    if (!(length > 1e-12)) return std::nullopt;
    const double sign = (axis == 0 ? 1.0 : -1.0) / length;
    double offset = 0;
    for (int k = 0; k < 3; ++k) {
      pose[4 * axis + k] = sign * m[k][axis];
      offset -= pose[4 * axis + k] * m[k][3];
    }
    pose[4 * axis + 3] = offset;
  }
  const double determinant = pose[0] * (pose[5] * pose[10] - pose[6] * pose[9]) -
                             pose[1] * (pose[4] * pose[10] - pose[6] * pose[8]) +
                             pose[2] * (pose[4] * pose[9] - pose[5] * pose[8]);
  if (std::abs(determinant - 1) > 1e-2) return std::nullopt;
  return pose;
}

/// The lens of a frame; width 0 where the file does not state a size.
Result<RawView> view_of(const Json& frame, const Json& root, const std::string& where) {
  RawView view;
  const std::string model = text_of(frame, root, "camera_model");
  const bool known = model.empty() || model == "OPENCV" || model == "PINHOLE" ||
                     model == "SIMPLE_PINHOLE" || model == "SIMPLE_RADIAL" || model == "RADIAL" ||
                     model == "FULL_OPENCV" || model == "perspective";
  const Json::const_iterator fisheye = root.find("is_fisheye");
  if (!known || (fisheye != root.end() && fisheye->is_boolean() && fisheye->get<bool>())) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: the camera model {} cannot be trained on (usable: PINHOLE, OPENCV); "
                    "undistort the images first",
                    where, known ? "fisheye" : model)};
  }
  Lens& lens = view.lens;
  const double width = number_of(frame, root, "w", 0), height = number_of(frame, root, "h", 0);
  if (!(width >= 0 && width <= 65500 && height >= 0 && height <= 65500)) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{}: w and h ({} x {}) are no image size", where, width, height)};
  }
  if (width >= 1 && height >= 1) {
    lens.width = static_cast<uint32_t>(std::lround(width));
    lens.height = static_cast<uint32_t>(std::lround(height));
  }
  lens.fx = number_of(frame, root, "fl_x", 0);
  lens.fy = number_of(frame, root, "fl_y", lens.fx);
  if (lens.fx == 0) lens.fx = lens.fy;
  view.angle_x = number_of(frame, root, "camera_angle_x", 0);
  if (lens.fx == 0 && !(view.angle_x > 0 && view.angle_x < 3.14159)) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: neither fl_x nor a usable camera_angle_x, on the frame or at the top: "
                    "the focal length is not known",
                    where)};
  }
  if (lens.width == 0 && lens.fx != 0) {
    // A focal length in pixels of an unknown size: the image's own size is meant.
    lens.cx = number_of(frame, root, "cx", 0), lens.cy = number_of(frame, root, "cy", 0);
  } else {
    lens.cx = number_of(frame, root, "cx", 0.5 * lens.width);
    lens.cy = number_of(frame, root, "cy", 0.5 * lens.height);
  }
  lens.k1 = number_of(frame, root, "k1", 0), lens.k2 = number_of(frame, root, "k2", 0);
  lens.p1 = number_of(frame, root, "p1", 0), lens.p2 = number_of(frame, root, "p2", 0);
  for (const char* key : {"k3", "k4", "k5", "k6"}) {
    if (number_of(frame, root, key, 0) != 0) {
      return Error{
          ErrorCode::Dataset,
          fmt::format("{}: the lens coefficient {} is not zero; only k1 k2 p1 p2 can be trained "
                      "on, undistort the images first",
                      where, key)};
    }
  }
  for (const double value :
       {lens.fx, lens.fy, lens.cx, lens.cy, lens.k1, lens.k2, lens.p1, lens.p2}) {
    if (!std::isfinite(value) || lens.fx < 0 || lens.fy < 0) {
      return Error{ErrorCode::Dataset, fmt::format("{}: a camera parameter is not usable", where)};
    }
  }
  const bool pinhole = model == "PINHOLE" || model == "SIMPLE_PINHOLE" ||
                       (lens.k1 == 0 && lens.k2 == 0 && lens.p1 == 0 && lens.p2 == 0);
  if (pinhole) lens.k1 = lens.k2 = lens.p1 = lens.p2 = 0;
  lens.kind = pinhole ? LensKind::Pinhole : LensKind::OpenCv;
  return view;
}

Result<void> read_frames(const fs::path& file, bool is_test, RawCapture& capture,
                         std::set<std::string>& seen) {
  MILLRACE_ASSIGN(const Json root, parse_json(file));
  const auto refuse = [&](const std::string& what) {
    return Error{ErrorCode::Dataset, fmt::format("{}: {}", file.string(), what)};
  };
  if (!root.is_object()) return refuse("the top is not an object");
  const auto frames = root.find("frames");
  if (frames == root.end() || !frames->is_array()) return refuse("there is no list \"frames\"");
  std::vector<std::string> no_pose, twice;
  for (size_t i = 0; i < frames->size(); ++i) {
    const Json& frame = (*frames)[i];
    const std::string where = fmt::format("{}: frame {}", file.string(), i);
    if (!frame.is_object()) return refuse(fmt::format("frame {} is not an object", i));
    const auto path = frame.find("file_path");
    if (path == frame.end() || !path->is_string() || path->get<std::string>().empty()) {
      return refuse(fmt::format("frame {} has no file_path", i));
    }
    std::string name = path->get<std::string>();
    std::replace(name.begin(), name.end(), '\\', '/');
    name = fs::path(name).lexically_normal().generic_string();
    if (!seen.insert(name).second) {
      twice.push_back(name);
      continue;
    }
    const auto pose = pose_of(frame);
    if (!pose) {
      no_pose.push_back(name);
      continue;
    }
    MILLRACE_ASSIGN(RawView view, view_of(frame, root, where));
    view.name = std::move(name);
    view.world_to_camera = *pose;
    view.in_test_file = is_test;
    capture.views.push_back(std::move(view));
  }
  if (!no_pose.empty()) {
    capture.warnings.push_back(
        fmt::format("{} frames have no usable transform_matrix and are skipped: {}", no_pose.size(),
                    list_names(no_pose)));
  }
  if (!twice.empty()) {
    capture.warnings.push_back(
        fmt::format("{} frames name a file a second time; the first is used: {}", twice.size(),
                    list_names(twice)));
  }
  const auto ply = root.find("ply_file_path");
  if (!is_test && ply != root.end() && ply->is_string()) {
    capture.points_hint = file.parent_path() / ply->get<std::string>();
  }
  if (!is_test) {
    const bool nerfstudio = root.contains("camera_model") || root.contains("applied_transform");
    capture.format = fmt::format("{} {}",
                                 nerfstudio                    ? "nerfstudio"
                                 : root.contains("aabb_scale") ? "instant-ngp"
                                                               : "Blender",
                                 file.filename().string());
  }
  return {};
}

}  // namespace

std::optional<fs::path> find_transforms(const fs::path& root) {
  std::error_code ec;
  for (const char* name : {"transforms.json", "transforms_train.json"}) {
    if (fs::is_regular_file(root / name, ec)) return root / name;
  }
  // Any other JSON that looks like one, whatever its name ("transform_train.json").
  std::vector<fs::path> others;
  for (fs::directory_iterator it(root, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->path().extension() == ".json") others.push_back(it->path());
  }
  std::sort(others.begin(), others.end());
  for (const fs::path& path : others) {
    const auto text = read_text_file(path);
    if (text && text.value().find("\"frames\"") != std::string::npos &&
        text.value().find("\"transform_matrix\"") != std::string::npos) {
      return path;
    }
  }
  return std::nullopt;
}

Result<RawCapture> read_transforms(const fs::path& file) {
  RawCapture capture;
  capture.root = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  capture.image_base = capture.root;
  capture.names_hold_folder = true;
  std::set<std::string> seen;
  MILLRACE_TRY(read_frames(file, false, capture, seen));
  if (file.filename() == "transforms_train.json") {
    std::error_code ec;
    const fs::path test = capture.root / "transforms_test.json";
    if (fs::is_regular_file(test, ec)) {
      MILLRACE_TRY(read_frames(test, true, capture, seen));
      capture.has_test_file = true;
    }
    if (fs::is_regular_file(capture.root / "transforms_val.json", ec)) {
      capture.notes.push_back("transforms_val.json is not used");
    }
  }
  if (capture.views.empty()) {
    return Error{ErrorCode::Dataset, fmt::format("{}: no frame has a usable pose", file.string())};
  }
  return capture;
}

}  // namespace millrace
