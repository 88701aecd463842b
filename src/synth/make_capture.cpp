// make_capture: options and folder checks, then view by view to files, then the COLMAP model.
#include "synth/make_capture.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/parallel.h"
#include "synth/capture_camera.h"
#include "synth/colmap_write.h"
#include "synth/encode.h"
#include "synth/render_view.h"
#include "synth/scene.h"
#include "synth/sfm_points.h"

namespace millrace {

namespace {

namespace fs = std::filesystem;
using namespace synth;  // NOLINT: this file is the facade of that namespace

constexpr char kReadme[] =
    R"(Ground truth of a synthetic capture. <name> is the photograph's name without its extension.

neutral/<name>.png     8-bit sRGB: the photograph with exposure 0, no white balance, no vignetting and no
                       distractor, through the same lens, before JPEG.
depth/<name>.png       16-bit gray: depth along the camera's z axis at the pixel centre, in 1/1000 of a
                       world unit, without the distractor. 0 = sky, or farther than 65.535 units.
wire_masks/<name>.png  8-bit gray: 255 x the share of the pixel's rays that meet a wire. A pixel belongs to
                       a wire where this is not 0.
exposure.json          per image: ev, white_balance [r,g,b] and gain = 2^ev x white_balance; and the
                       vignetting: v(r) = 1 + a r^2 + b r^4, r = distance from the principal point over half
                       of the image's diagonal. photo = sRGB(clip(linear x gain x v)) where
                       neutral = sRGB(clip(linear)) and sRGB is the usual curve.

../masks/<name>.png    (with masks) 8-bit gray: white = keep, black = the distractor or its shadow.
)";

Error usage(std::string message) { return Error{ErrorCode::Usage, std::move(message)}; }

Result<void> check_options(const CaptureOptions& options) {
  if (options.n_views < 4 || options.n_views > 1000) {
    return usage(fmt::format("make-capture: {} views asked for; use 4 to 1000", options.n_views));
  }
  for (const uint32_t side : {options.width, options.height}) {
    if (side < 16 || side > 8192) {
      return usage(
          fmt::format("make-capture: an image of {} x {} pixels asked for; use 16 to 8192 a side",
                      options.width, options.height));
    }
  }
  if (options.samples < 1 || options.samples > 32) {
    return usage(fmt::format("make-capture: {} rays per pixel side asked for; use 1 to 32",
                             options.samples));
  }
  if (options.n_points > 1000000) {
    return usage(
        fmt::format("make-capture: {} points asked for; use at most 1000000", options.n_points));
  }
  return {};
}

// Removes an earlier synthetic capture if that is allowed; anything else in `folder` is never
// touched.
Result<void> clear_folder(const fs::path& folder, bool overwrite) {
  std::error_code ignored;
  const fs::path ours[] = {folder / "images", folder / "masks", folder / "sparse",
                           folder / "ground_truth"};
  bool occupied = false;
  for (const fs::path& path : ours) occupied |= fs::exists(path, ignored);
  if (!occupied) return {};
  const bool synthetic = fs::exists(folder / "ground_truth" / "exposure.json", ignored);
  if (!synthetic) {
    return usage(
        fmt::format("{}: holds images, masks, sparse or ground_truth that make-capture did not "
                    "write; choose another folder",
                    folder.string()));
  }
  if (!overwrite) {
    return usage(fmt::format("{}: holds a capture already; pass --overwrite to replace it",
                             folder.string()));
  }
  for (const fs::path& path : ours) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) {
      return Error{ErrorCode::Output, fmt::format("{}: cannot remove the earlier capture: {}",
                                                  path.string(), error.message())};
    }
  }
  return {};
}

std::string exposure_json(const std::vector<Shot>& shots, const Vignette& vignette) {
  nlohmann::ordered_json root;
  root["schema"] = 1;
  root["curve"] = "srgb";
  root["vignetting"] = {{"a", vignette.a}, {"b", vignette.b}};
  root["images"] = nlohmann::ordered_json::array();
  for (const Shot& shot : shots) {
    nlohmann::ordered_json image;
    image["name"] = shot.name;
    image["ev"] = shot.ev;
    image["white_balance"] = shot.white_balance;
    std::array<double, 3> gain;
    for (size_t k = 0; k < 3; ++k) gain[k] = std::exp2(shot.ev) * shot.white_balance[k];
    image["gain"] = gain;
    root["images"].push_back(std::move(image));
  }
  return root.dump(1) + "\n";
}

Result<void> save(const fs::path& path, Result<std::vector<std::byte>> bytes) {
  if (!bytes.ok()) {
    return Error{bytes.error().code, fmt::format("{}: {}", path.string(), bytes.error().message)};
  }
  return write_file_atomically(path, std::span<const std::byte>(bytes.value()));
}

// Encodes and writes the files of one view, several at a time; the first error in a fixed order
// counts.
Result<void> save_view(const fs::path& folder, const Lens& lens, const Shot& shot,
                       const ViewPixels& pixels) {
  const std::string png = fs::path(shot.name).replace_extension(".png").string();
  const fs::path truth = folder / "ground_truth";
  const uint32_t w = lens.width, h = lens.height;
  std::array<Result<void>, 5> results;
  parallel_blocks(results.size(), [&](uint64_t task) {
    Result<void>& result = results[task];
    if (task == 0) result = save(folder / "images" / shot.name, encode_jpeg(pixels.photo, w, h));
    if (task == 1) result = save(truth / "neutral" / png, encode_png8(pixels.neutral, w, h, 3));
    if (task == 2) result = save(truth / "depth" / png, encode_png16(pixels.depth, w, h));
    if (task == 3) result = save(truth / "wire_masks" / png, encode_png8(pixels.wire, w, h, 1));
    if (task == 4 && !pixels.keep.empty()) {
      result = save(folder / "masks" / png, encode_png8(pixels.keep, w, h, 1));
    }
  });
  for (Result<void>& result : results) MILLRACE_TRY(std::move(result));
  return {};
}

// How well one colour predicts the held-out views; exact integer sums per view.
class MeanColor {
 public:
  void add(const std::vector<uint8_t>& rgb) {
    Sums sums;
    for (size_t i = 0; i < rgb.size(); ++i) {
      sums.first[i % 3] += rgb[i];
      sums.second[i % 3] += static_cast<uint64_t>(rgb[i]) * rgb[i];
    }
    const size_t n_pixels = rgb.size() / 3;
    sums.n_pixels = static_cast<double>(n_pixels);
    views_.push_back(sums);
  }

  double held_out_psnr() const {
    std::array<double, 3> mean = {};
    double n_training = 0;
    for (size_t i = 0; i < views_.size(); ++i) {
      if (i % 8 == 0) continue;
      n_training += views_[i].n_pixels;
      for (size_t k = 0; k < 3; ++k) mean[k] += static_cast<double>(views_[i].first[k]);
    }
    double total = 0, n_held_out = 0;
    for (size_t i = 0; i < views_.size(); i += 8) {
      double squares = 0;
      for (size_t k = 0; k < 3; ++k) {
        const double m = mean[k] / n_training, n = views_[i].n_pixels;
        squares += static_cast<double>(views_[i].second[k]) -
                   2 * m * static_cast<double>(views_[i].first[k]) + n * m * m;
      }
      total += 10 * std::log10(255.0 * 255.0 * 3 * views_[i].n_pixels / std::max(squares, 1e-9));
      n_held_out += 1;
    }
    return total / n_held_out;
  }

 private:
  struct Sums {
    std::array<uint64_t, 3> first = {}, second = {};
    double n_pixels = 0;
  };
  std::vector<Sums> views_;
};

}  // namespace

Result<CaptureReport> make_capture(const fs::path& folder, const CaptureOptions& options,
                                   const std::function<void(uint32_t, uint32_t)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  MILLRACE_TRY(check_options(options));
  MILLRACE_TRY(clear_folder(folder, options.overwrite));

  const Scene scene = build_scene(options.seed);
  const Lens lens = make_lens(options);
  const Vignette vignette = make_vignette(options);
  const std::vector<Shot> shots = make_shots(options);
  // First, because its presence marks the folder as one that --overwrite may clear.
  MILLRACE_TRY(write_file_atomically(folder / "ground_truth" / "exposure.json",
                                     exposure_json(shots, vignette)));
  MILLRACE_TRY(
      write_file_atomically(folder / "ground_truth" / "README", std::string_view(kReadme)));

  std::vector<SfmPoint> points = find_points(scene, options, lens, shots);
  const auto keypoints = make_keypoints(options, points);
  MeanColor mean_color;
  for (uint32_t view = 0; view < options.n_views; ++view) {
    const ViewPixels pixels = render_view(scene, options, lens, vignette, shots[view], view);
    add_colors(lens, pixels, keypoints[view], points);
    mean_color.add(pixels.photo);
    MILLRACE_TRY(save_view(folder, lens, shots[view], pixels));
    if (progress) progress(view + 1, options.n_views);
  }

  const ColmapModel model{lens, shots, points, keypoints};
  for (const auto& [name, content] :
       options.text_model ? colmap_text(model) : colmap_binary(model)) {
    MILLRACE_TRY(write_file_atomically(folder / "sparse" / "0" / name, std::string_view(content)));
  }
  CaptureReport report;
  report.n_views = options.n_views;
  report.n_points = points.size();
  report.mean_color_psnr = mean_color.held_out_psnr();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace millrace
