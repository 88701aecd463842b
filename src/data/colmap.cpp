// Finding a COLMAP model among the layouts in use, and reading it into a RawCapture.
#include "data/colmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "data/capture.h"
#include "data/text_fields.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

bool holds_binary(const fs::path& folder) {
  return is_file(folder / "cameras.bin") && is_file(folder / "images.bin");
}

bool holds_text(const fs::path& folder) {
  return is_file(folder / "cameras.txt") && is_file(folder / "images.txt");
}

bool holds_model(const fs::path& folder) { return holds_binary(folder) || holds_text(folder); }

std::string shown(const fs::path& folder, const fs::path& root) {
  const fs::path relative = folder.lexically_relative(root);
  return relative.empty() ? folder.string() : relative.string();
}

/// The numbered sub-folder of `parent` with the most images, or `parent` itself.
std::optional<fs::path> best_in(const fs::path& parent, const fs::path& root,
                                std::vector<std::string>& notes) {
  std::vector<std::pair<uint64_t, uint32_t>> models;  // images, folder number
  std::error_code ec;
  for (fs::directory_iterator it(parent, ec), end; !ec && it != end; it.increment(ec)) {
    const auto number = parse_integer<uint32_t>(it->path().filename().string());
    if (number && holds_model(it->path())) {
      models.emplace_back(count_colmap_images(it->path()), *number);
    }
  }
  if (models.empty()) {
    if (holds_model(parent)) return parent;
    return std::nullopt;
  }
  const auto best =
      *std::max_element(models.begin(), models.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : a.second > b.second;
      });
  const fs::path chosen = parent / std::to_string(best.second);
  if (models.size() > 1) {
    notes.push_back(
        fmt::format("{} holds {} disconnected models; {} has the most images ({}) and is used",
                    shown(parent, root), models.size(), shown(chosen, root), best.first));
  }
  return chosen;
}

Result<ColmapModel> parse_model(const fs::path& folder, bool binary) {
  ColmapModel model;
  const std::string ending = binary ? ".bin" : ".txt";
  const fs::path cameras = folder / ("cameras" + ending);
  const fs::path images = folder / ("images" + ending);
  const fs::path points = folder / ("points3D" + ending);
  MILLRACE_TRY(binary ? parse_cameras_binary(cameras, model) : parse_cameras_text(cameras, model));
  MILLRACE_TRY(binary ? parse_images_binary(images, model) : parse_images_text(images, model));
  if (is_file(points)) {
    MILLRACE_TRY(binary ? parse_points_binary(points, model) : parse_points_text(points, model));
  }
  return model;
}

}  // namespace

std::optional<std::array<double, 12>> pose_from_quaternion(const std::array<double, 4>& q,
                                                           const std::array<double, 3>& t) {
  double largest = 0;
  for (const double value : q) {
    if (!std::isfinite(value)) return std::nullopt;
    largest = std::max(largest, std::abs(value));
  }
  for (const double value : t) {
    if (!(std::abs(value) <= kFarthest)) return std::nullopt;
  }
  // Below this a quaternion is noise: rounding has already destroyed its direction.
  if (largest < 1e-12) return std::nullopt;
  double w = q[0] / largest, x = q[1] / largest, y = q[2] / largest, z = q[3] / largest;
  const double length = std::sqrt(w * w + x * x + y * y + z * z);
  w /= length, x /= length, y /= length, z /= length;
  return std::array<double, 12>{
      1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),     t[0],
      2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),     t[1],
      2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y), t[2]};
}

uint64_t count_colmap_images(const fs::path& folder) {
  if (holds_binary(folder)) {
    std::ifstream file(folder / "images.bin", std::ios::binary);
    uint64_t count = 0;
    file.read(reinterpret_cast<char*>(&count), sizeof(count));
    // A corrupt count must not win over a sound model: no image takes fewer than 73 bytes.
    std::error_code ec;
    const uint64_t size = fs::file_size(folder / "images.bin", ec);
    return file.gcount() == 8 && !ec && count <= size / 73 ? count : 0;
  }
  ColmapModel model;
  return parse_images_text(folder / "images.txt", model) ? model.images.size() : 0;
}

std::optional<fs::path> find_colmap_model(const fs::path& root, std::vector<std::string>& notes) {
  for (const char* parent : {"sparse", "colmap/sparse", "dense/0/sparse", "dense/sparse", "."}) {
    const fs::path folder = std::string_view(parent) == "." ? root : root / parent;
    if (std::string_view(parent) == ".") {
      if (holds_model(root)) return root;
      continue;
    }
    if (auto found = best_in(folder, root, notes)) return found;
  }
  return std::nullopt;
}

Result<RawCapture> read_colmap(const fs::path& root, const fs::path& folder) {
  const bool binary = holds_binary(folder);
  MILLRACE_ASSIGN(ColmapModel model, parse_model(folder, binary));
  RawCapture capture;
  capture.root = root;
  const std::string place = folder == root ? "flat" : shown(folder, root);
  capture.format = fmt::format("COLMAP {} ({})", binary ? "binary" : "text", place);
  capture.notes = std::move(model.notes);
  if (binary && holds_text(folder)) {
    capture.notes.push_back(fmt::format("{} holds .bin and .txt; the .bin files are used", place));
  }
  capture.points = std::move(model.points);
  if (model.images.empty()) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: the model holds no image; the reconstruction has failed or is empty",
                    (folder / (binary ? "images.bin" : "images.txt")).string())};
  }

  std::map<uint32_t, const ColmapCamera*> cameras;
  for (const ColmapCamera& camera : model.cameras) {
    if (!cameras.emplace(camera.id, &camera).second) {
      capture.warnings.push_back(
          fmt::format("{}: camera {} is there twice; the first is used", camera.where, camera.id));
    }
  }
  std::map<uint32_t, Lens> lenses;
  std::set<std::string> seen;
  std::vector<std::string> no_pose, twice;
  for (ColmapImage& image : model.images) {
    if (!seen.insert(image.name).second) {
      twice.push_back(image.name);
      continue;
    }
    if (!image.world_to_camera) {
      no_pose.push_back(image.name);
      continue;
    }
    auto lens = lenses.find(image.camera_id);
    if (lens == lenses.end()) {
      const auto camera = cameras.find(image.camera_id);
      if (camera == cameras.end()) {
        return Error{
            ErrorCode::Dataset,
            fmt::format("{}: image '{}' is of camera {}, which {} does not hold", image.where,
                        image.name, image.camera_id, binary ? "cameras.bin" : "cameras.txt")};
      }
      const ColmapCamera& c = *camera->second;
      MILLRACE_ASSIGN(const Lens made, make_lens(*c.model, c.params, c.width, c.height,
                                                 fmt::format("{}: camera {}", c.where, c.id)));
      lens = lenses.emplace(image.camera_id, made).first;
    }
    RawView view;
    view.name = std::move(image.name);
    view.lens = lens->second;
    view.world_to_camera = *image.world_to_camera;
    capture.views.push_back(std::move(view));
  }
  if (!no_pose.empty()) {
    capture.warnings.push_back(
        fmt::format("{} of {} images have no usable pose and are skipped: {}", no_pose.size(),
                    model.images.size(), list_names(no_pose)));
  }
  if (!twice.empty()) {
    capture.warnings.push_back(
        fmt::format("{} names are there twice; the first of each is used: {}", twice.size(),
                    list_names(twice)));
  }
  // The images of an undistorted or nested model lie beside its sparse folder, else in the root.
  capture.image_base = root;
  for (fs::path up = folder; up != root && up.has_relative_path(); up = up.parent_path()) {
    std::error_code ec;
    if (fs::is_directory(up / "images", ec)) {
      capture.image_base = up;
      break;
    }
  }
  return capture;
}

}  // namespace millrace
