// load_dataset: from a folder to views with cameras, points and a hold-out.
#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "data/camera_model.h"
#include "data/capture.h"
#include "data/image.h"
#include "data/image_finder.h"
#include "data/mask_finder.h"
#include "data/ply_points.h"
#include "data/random_points.h"
#include "data/scene_scale.h"
#include "data/split.h"
#include "data/undistort.h"

namespace millrace {

std::string list_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}

Result<RawCapture> read_capture(const fs::path& given) {
  // Without a trailing slash, so that parents of what lies inside compare equal to it.
  fs::path path = given.lexically_normal();
  if (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
  std::error_code ec;
  if (!fs::exists(path, ec)) {
    return Error{ErrorCode::Dataset, fmt::format("{}: there is no such folder", path.string())};
  }
  if (!is_folder(path)) {
    if (path.extension() == ".json") return read_transforms(path);
    return Error{ErrorCode::Dataset,
                 fmt::format("{}: neither a folder nor a transforms JSON file", path.string())};
  }
  std::vector<std::string> notes;
  const auto model = find_colmap_model(path, notes);
  const auto transforms = find_transforms(path);
  if (!model && !transforms) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: no capture found; looked for cameras and images (.bin or .txt) in "
                    "sparse/0, sparse, colmap/sparse/0, dense/0/sparse and the folder itself, and "
                    "for transforms.json and transforms_train.json",
                    path.string())};
  }
  if (!model) return read_transforms(*transforms);
  MILLRACE_ASSIGN(RawCapture capture, read_colmap(path, *model));
  capture.notes.insert(capture.notes.begin(), notes.begin(), notes.end());
  if (transforms) {
    capture.notes.push_back(
        fmt::format("{} is there too and is not used; name that file as the dataset to train on it",
                    transforms->filename().string()));
  }
  return capture;
}

/// Where the photographs of a capture are, and their smaller copies.
class ImageSource {
 public:
  static Result<ImageSource> open(RawCapture& capture, const DatasetOptions& options) {
    ImageSource source;
    source.names_hold_folder_ = capture.names_hold_folder && options.images.empty();
    source.factor_ = std::max(1, options.resize_factor);
    fs::path folder = capture.image_base;
    if (!options.images.empty()) {
      const auto chosen = named_folder(capture, options.images);
      if (!chosen) {
        return Error{ErrorCode::Usage,
                     fmt::format("--images {}: there is no such folder, neither in {} nor "
                                 "where the program was started",
                                 options.images, capture.root.string())};
      }
      folder = *chosen;
    } else if (!capture.names_hold_folder) {
      folder = usual_folder(capture);
      if (folder.filename() != "images") {
        capture.notes.push_back(fmt::format("images are taken from {}", folder.string()));
      }
    }
    source.main_.emplace_back(folder);
    if (source.factor_ > 1 && !source.names_hold_folder_) {
      const fs::path reduced = suffixed(folder, source.factor_);
      if (is_folder(reduced)) source.reduced_.emplace_back(reduced);
    }
    source.trim_names_ = capture.names_hold_folder && !options.images.empty();
    return source;
  }

  /// The image file, and whether it is a copy already reduced by the resize factor.
  std::optional<std::pair<fs::path, bool>> find(const std::string& name) {
    if (factor_ > 1 && names_hold_folder_) {
      const size_t slash = name.find('/');
      if (slash != std::string::npos && slash > 0) {
        const std::string reduced =
            fmt::format("{}_{}{}", name.substr(0, slash), factor_, name.substr(slash));
        if (is_folder(main_[0].folder() / reduced.substr(0, reduced.find('/')))) {
          if (auto found = main_[0].find(reduced)) return {{*found, true}};
        }
      }
    }
    for (ImageFinder& finder : reduced_) {
      if (auto found = find_in(finder, name)) return {{*found, true}};
    }
    if (auto found = find_in(main_[0], name)) return {{*found, false}};
    return std::nullopt;
  }

  const fs::path& folder() const { return main_[0].folder(); }

 private:
  std::optional<fs::path> find_in(ImageFinder& finder, const std::string& name) const {
    if (auto found = finder.find(name)) return found;
    if (!trim_names_) return std::nullopt;
    // --images replaces the folder that the names of a JSON capture begin with.
    const size_t slash = name.find('/');
    if (slash != std::string::npos) {
      if (auto found = finder.find(name.substr(slash + 1))) return found;
    }
    return finder.find(fs::path(name).filename().string());
  }

  static fs::path suffixed(fs::path folder, int factor) {
    if (!folder.has_filename()) folder = folder.parent_path();
    folder += fmt::format("_{}", factor);
    return folder;
  }

  static std::optional<fs::path> named_folder(const RawCapture& capture, const std::string& name) {
    for (const fs::path& folder :
         {capture.image_base / name, capture.root / name, fs::path(name)}) {
      if (is_folder(folder)) return folder;
    }
    return std::nullopt;
  }

  /// The first of the usual folders that holds one of the first images; else the first that is
  /// there.
  static fs::path usual_folder(const RawCapture& capture) {
    std::vector<fs::path> candidates;
    for (const char* name : {"images", "input", "rgb", "images_2", "images_4", "images_8"}) {
      if (is_folder(capture.image_base / name)) candidates.push_back(capture.image_base / name);
    }
    candidates.push_back(capture.image_base);
    if (capture.root != capture.image_base) candidates.push_back(capture.root);
    for (const fs::path& folder : candidates) {
      ImageFinder finder(folder);
      for (size_t i = 0; i < std::min<size_t>(capture.views.size(), 16); ++i) {
        if (finder.find(capture.views[i].name)) return folder;
      }
    }
    return candidates.front();
  }

  bool names_hold_folder_ = false, trim_names_ = false;
  int factor_ = 1;
  std::vector<ImageFinder> main_, reduced_;
};

uint32_t scaled(uint32_t size, double factor) {
  return std::max(1u, static_cast<uint32_t>(std::lround(size * factor)));
}

/// The size an image is decoded to.
ImageSize decode_size(ImageSize file, double factor, uint32_t max_width) {
  ImageSize size{scaled(file.width, factor), scaled(file.height, factor)};
  const uint32_t longest = std::max(size.width, size.height);
  if (max_width > 0 && longest > max_width) {
    const double limit = static_cast<double>(max_width) / longest;
    size = {scaled(size.width, limit), scaled(size.height, limit)};
  }
  return size;
}

/// The lens for an image of size `to`, from what the capture says; completes what it leaves to the
/// file.
Lens fit_lens(const RawView& raw, ImageSize file, ImageSize to) {
  Lens lens = raw.lens;
  if (lens.width == 0) {
    lens.width = file.width;
    lens.height = file.height;
    if (lens.cx == 0 && lens.cy == 0) lens.cx = 0.5 * file.width, lens.cy = 0.5 * file.height;
  }
  if (lens.fx == 0) lens.fx = lens.fy = 0.5 * lens.width / std::tan(0.5 * raw.angle_x);
  const double sx = static_cast<double>(to.width) / lens.width;
  const double sy = static_cast<double>(to.height) / lens.height;
  lens.fx *= sx, lens.cx *= sx;
  lens.fy *= sy, lens.cy *= sy;
  lens.width = to.width;
  lens.height = to.height;
  return lens;
}

struct Skipped {
  std::vector<std::string> missing, unreadable, other_shape;
  std::string first_reason;  // why the first unreadable one is
};

void warn_of(const Skipped& skipped, size_t n_all, const fs::path& folder, Dataset& dataset) {
  if (!skipped.missing.empty()) {
    dataset.warnings.push_back(
        fmt::format("{} of {} images are missing below {} and are skipped: {}",
                    skipped.missing.size(), n_all, folder.string(), list_names(skipped.missing)));
  }
  if (!skipped.unreadable.empty()) {
    dataset.warnings.push_back(fmt::format(
        "{} of {} images cannot be read and are skipped: {} ({})", skipped.unreadable.size(), n_all,
        list_names(skipped.unreadable), skipped.first_reason));
  }
  if (!skipped.other_shape.empty()) {
    dataset.warnings.push_back(fmt::format(
        "{} images have another aspect ratio than their camera (turned or cropped since?): {}",
        skipped.other_shape.size(), list_names(skipped.other_shape)));
  }
}

Result<void> make_views(RawCapture& capture, const DatasetOptions& options, Dataset& dataset,
                        std::vector<bool>& from_test_file) {
  std::sort(capture.views.begin(), capture.views.end(),
            [](const RawView& a, const RawView& b) { return a.name < b.name; });
  MILLRACE_ASSIGN(ImageSource source, ImageSource::open(capture, options));
  Skipped skipped;
  for (const RawView& raw : capture.views) {
    const auto found = source.find(raw.name);
    if (!found) {
      skipped.missing.push_back(raw.name);
      continue;
    }
    const auto& [path, is_reduced] = *found;
    const Result<ImageSize> file = read_image_size(path);
    if (!file) {
      if (skipped.unreadable.empty()) skipped.first_reason = file.error().message;
      skipped.unreadable.push_back(raw.name);
      continue;
    }
    View view;
    view.name = raw.name;
    view.image_path = path;
    view.index = static_cast<uint32_t>(dataset.views.size());
    view.file_width = file.value().width;
    view.file_height = file.value().height;
    const double factor = is_reduced ? 1.0 : 1.0 / std::max(1, options.resize_factor);
    const ImageSize size = decode_size(file.value(), factor, options.max_width);
    view.lens = fit_lens(raw, file.value(), size);
    if (raw.lens.width > 0) {
      const double stretch = (static_cast<double>(file.value().width) * raw.lens.height) /
                             (static_cast<double>(file.value().height) * raw.lens.width);
      if (std::abs(stretch - 1) > 0.02) skipped.other_shape.push_back(raw.name);
    }
    const std::string where = fmt::format("{}: camera of '{}'", dataset.format, raw.name);
    MILLRACE_TRY(check_lens(view.lens, where));
    MILLRACE_ASSIGN(const Undistorted pinhole,
                    undistorted_camera(view.lens, options.undistort_to, where));
    view.camera = {pinhole.width, pinhole.height, pinhole.fx,         pinhole.fy,
                   pinhole.cx,    pinhole.cy,     raw.world_to_camera};
    view.crop_x = pinhole.crop_x;
    view.crop_y = pinhole.crop_y;
    dataset.views.push_back(std::move(view));
    if (capture.has_test_file) from_test_file.push_back(raw.in_test_file);
  }
  if (dataset.views.empty()) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: none of the {} images can be used: {} missing below {}, {} unreadable; "
                    "for example {}{}. Name their folder with --images",
                    capture.root.string(), capture.views.size(), skipped.missing.size(),
                    source.folder().string(), skipped.unreadable.size(), capture.views[0].name,
                    skipped.first_reason.empty() ? "" : " (" + skipped.first_reason + ")")};
  }
  warn_of(skipped, capture.views.size(), source.folder(), dataset);
  return {};
}

/// Points that the capture names, or a cloud under one of the usual names; empty if there is none.
Result<PointCloud> find_point_file(const RawCapture& capture, Dataset& dataset) {
  std::vector<fs::path> candidates;
  if (!capture.points_hint.empty()) candidates.push_back(capture.points_hint);
  for (const char* name :
       {"points3D.ply", "sparse/0/points3D.ply", "sparse/points3D.ply", "pointcloud.ply",
        "dense_pc.ply", "init.ply", "sparse_pc.ply", "points3d.ply"}) {
    candidates.push_back(capture.root / name);
  }
  for (const fs::path& path : candidates) {
    std::error_code ec;
    if (!fs::is_regular_file(path, ec)) {
      if (path == capture.points_hint) {
        dataset.warnings.push_back(
            fmt::format("the point cloud that the capture names is missing: {}", path.string()));
      }
      continue;
    }
    MILLRACE_ASSIGN(PointCloud cloud, read_point_ply(path));
    dataset.notes.push_back(
        fmt::format("{} points are taken from {}", cloud.count(), path.string()));
    return cloud;
  }
  return PointCloud{};
}

void drop_non_finite(Dataset& dataset) {
  PointCloud& cloud = dataset.points;
  size_t kept = 0;
  for (size_t i = 0; i < cloud.count(); ++i) {
    const float* p = &cloud.positions[3 * i];
    const auto is_usable = [](float value) { return std::abs(value) <= kFarthest; };
    if (!is_usable(p[0]) || !is_usable(p[1]) || !is_usable(p[2])) continue;
    for (size_t k = 0; k < 3; ++k) {
      cloud.positions[3 * kept + k] = cloud.positions[3 * i + k];
      cloud.colors[3 * kept + k] = cloud.colors[3 * i + k];
    }
    ++kept;
  }
  if (kept < cloud.count()) {
    dataset.warnings.push_back(
        fmt::format("{} points have no usable position and are dropped", cloud.count() - kept));
  }
  cloud.positions.resize(3 * kept);
  cloud.colors.resize(3 * kept);
}

/// Warns of a world (UTM, for example) whose origin is so far away that single precision blurs the
/// scene.
void warn_of_distance(Dataset& dataset) {
  const double size = scene_scale(dataset).normaliser;
  double farthest = 0;
  for (const View& view : dataset.views) {
    for (const double c : camera_centre(view.camera)) farthest = std::max(farthest, std::abs(c));
  }
  if (farthest > 1e4 * size) {
    dataset.warnings.push_back(fmt::format(
        "the cameras are {:.3g} units from the origin but only {:.3g} apart: single precision will "
        "blur the scene; move the origin nearer",
        farthest, size));
  }
}

}  // namespace

Result<Dataset> load_dataset(const fs::path& path, const DatasetOptions& options) {
  if (options.resize_factor < 0) {
    return Error{ErrorCode::Usage,
                 fmt::format("--resize-factor {} must not be negative", options.resize_factor)};
  }
  MILLRACE_ASSIGN(RawCapture capture, read_capture(path));
  Dataset dataset;
  dataset.root = capture.root;
  dataset.format = capture.format;
  std::vector<bool> from_test_file;
  MILLRACE_TRY(make_views(capture, options, dataset, from_test_file));
  dataset.notes.insert(dataset.notes.begin(), capture.notes.begin(), capture.notes.end());
  dataset.warnings.insert(dataset.warnings.begin(), capture.warnings.begin(),
                          capture.warnings.end());
  MILLRACE_TRY(find_masks(options, dataset));
  MILLRACE_TRY(split_views(options, from_test_file, dataset));

  if (!options.random_points) {
    dataset.points = std::move(capture.points);
    if (dataset.points.count() == 0) {
      MILLRACE_ASSIGN(dataset.points, find_point_file(capture, dataset));
    }
    drop_non_finite(dataset);
  }
  if (dataset.points.count() == 0) {
    dataset.points = draw_points_in_frusta(dataset.views, options.init_num_points, options.seed);
    dataset.points_are_random = true;
    dataset.notes.push_back(fmt::format(
        "{}: {} points are drawn at random where the cameras look",
        options.random_points ? "the capture's points are not used" : "the capture has no points",
        dataset.points.count()));
  }
  warn_of_distance(dataset);
  return dataset;
}

}  // namespace millrace
