// Writing model files and holding them against the model.
#include "train/model_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/default_views.h"
#include "train/open_device.h"
#include "train/scene.h"
#include "train/view_renderer.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostViews = 8;
constexpr uint32_t kLongestSide = 800;
constexpr double kMostPsnr = 100;

GaussianCloud cut_to(const GaussianCloud& cloud, int sh_degree) {
  if (sh_degree >= cloud.sh_degree) return cloud;
  GaussianCloud out = cloud;
  out.sh_degree = sh_degree;
  out.sh_rest.clear();
  const auto n_from = static_cast<size_t>(3 * sh_rest_count(cloud.sh_degree));
  const auto n_kept = static_cast<ptrdiff_t>(3 * sh_rest_count(sh_degree));
  for (size_t row = 0; row < cloud.count(); ++row) {
    const auto begin = cloud.sh_rest.begin() + static_cast<ptrdiff_t>(row * n_from);
    out.sh_rest.insert(out.sh_rest.end(), begin, begin + n_kept);
  }
  return out;
}

bool is_equal(const GaussianCloud& a, const GaussianCloud& b) {
  return a.sh_degree == b.sh_degree && a.means == b.means && a.log_scales == b.log_scales &&
         a.rotations == b.rotations && a.opacities == b.opacities && a.sh0 == b.sh0 &&
         a.sh_rest == b.sh_rest;
}

double psnr_of(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::clamp(a[i], 0.0f, 1.0f) - std::clamp(b[i], 0.0f, 1.0f);
    sum += d * d;
  }
  const double mse = sum / static_cast<double>(std::max<size_t>(1, a.size()));
  return mse > 0 ? std::min(kMostPsnr, -10 * std::log10(mse)) : kMostPsnr;
}

std::vector<NamedCamera> chosen(const std::vector<NamedCamera>& cameras) {
  std::vector<NamedCamera> out;
  const size_t n = std::min(kMostViews, cameras.size());
  for (size_t i = 0; i < n; ++i) {
    NamedCamera named = cameras[i * cameras.size() / n];
    Camera& camera = named.camera;
    const uint32_t longest = std::max(camera.width, camera.height);
    if (longest > kLongestSide) {
      const uint32_t width = std::max(1u, camera.width * kLongestSide / longest);
      const uint32_t height = std::max(1u, camera.height * kLongestSide / longest);
      const double x = static_cast<double>(width) / camera.width;
      const double y = static_cast<double>(height) / camera.height;
      camera.fx *= x, camera.cx *= x, camera.width = width;
      camera.fy *= y, camera.cy *= y, camera.height = height;
    }
    out.push_back(named);
  }
  return out;
}

}  // namespace

ExportTolerance export_tolerance(ModelFormat format, const WriteOptions& options) {
  switch (format) {
    case ModelFormat::Ply:
      return {std::numeric_limits<double>::infinity()};
    case ModelFormat::CompressedPly:
      return {30};
    case ModelFormat::Splat:
      return {28, 0};
    case ModelFormat::Spz:
      return {options.spz.sh_bits >= 7 ? 36.0 : 28.0};
    case ModelFormat::Sog:
    case ModelFormat::Html:
      break;
  }
  return {36};
}

ProvenExports::ProvenExports(Device& device, const GaussianCloud& cloud,
                             std::vector<NamedCamera> cameras)
    : device_(device), cloud_(cloud) {
  constexpr uint32_t kRingWidth = 480, kRingHeight = 320;
  if (cameras.empty()) cameras = ring_cameras(cloud, kMostViews, kRingWidth, kRingHeight);
  near_plane_ = near_plane_for(cameras, model_centre(cloud));
  cameras_ = chosen(cameras);
}

Result<std::vector<std::vector<float>>> ProvenExports::render_blocking(const GaussianCloud& cloud) {
  std::vector<FrameSize> sizes;
  for (const NamedCamera& named : cameras_) sizes.push_back(frame_size(named.camera));
  const Model model = make_model(device_, cloud, cloud.sh_degree, cloud.count());
  ViewRenderer renderer(model, sizes, /*with_depth=*/false);
  std::vector<std::vector<float>> images;
  for (const NamedCamera& named : cameras_) {
    MILLRACE_ASSIGN(ViewRenderer::Image image,
                    renderer.render_blocking(named.camera, near_plane_,
                                             static_cast<uint32_t>(cloud.sh_degree), {0, 0, 0}));
    images.push_back(std::move(image.color.pixels));
  }
  return images;
}

Result<ExportedFile> ProvenExports::proof_blocking(const fs::path& path, ModelFormat format,
                                                   const WriteOptions& options) {
  MILLRACE_ASSIGN(const GaussianCloud read, read_model(path));
  const ExportTolerance tolerance = export_tolerance(format, options);
  ExportedFile file;
  file.path = path;
  file.format = format_name(format);
  std::error_code ec;
  file.bytes = fs::file_size(path, ec);
  file.gaussians = read.count();
  file.mean_psnr = file.least_psnr = kMostPsnr;
  if (std::isinf(tolerance.mean_psnr)) {
    if (is_equal(read, cloud_)) return file;
    return Error{ErrorCode::Output, "its values are not those of the model"};
  }
  const int sh_degree = std::min(tolerance.sh_degree, cloud_.sh_degree);
  auto& reference = references_[static_cast<size_t>(sh_degree)];
  if (reference.empty()) {
    MILLRACE_ASSIGN(reference, render_blocking(cut_to(cloud_, sh_degree)));
  }
  MILLRACE_ASSIGN(const auto images, render_blocking(read));
  double sum = 0;
  for (size_t i = 0; i < images.size(); ++i) {
    const double psnr = psnr_of(reference[i], images[i]);
    sum += psnr;
    file.least_psnr = std::min(file.least_psnr, psnr);
  }
  file.mean_psnr = sum / static_cast<double>(images.size());
  if (file.mean_psnr >= tolerance.mean_psnr) return file;
  return Error{ErrorCode::Output,
               fmt::format("its views are {:.1f} dB from those of the model (at least {:.0f} are "
                           "asked for)",
                           file.mean_psnr, tolerance.mean_psnr)};
}

Result<ExportedFile> ProvenExports::write_blocking(const fs::path& path, ModelFormat format,
                                                   const WriteOptions& options) {
  MILLRACE_TRY(write_model(path, cloud_, format, options));
  const Result<ExportedFile> proof = proof_blocking(path, format, options);
  if (proof.ok() || proof.error().code == ErrorCode::OutOfMemory ||
      proof.error().code == ErrorCode::DeviceLost) {
    return proof;
  }
  const fs::path bad = path.string() + ".bad";
  std::error_code ec;
  fs::rename(path, bad, ec);
  return Error{ErrorCode::Output, fmt::format("{} is not what it should be: {}; kept as {}",
                                              path.string(), proof.error().message, bad.string())};
}

Result<std::vector<ExportedFile>> export_model(const ExportOptions& options,
                                               const TrainObserver& observer) {
  MILLRACE_ASSIGN(const auto formats, formats_of_names(options.formats));
  MILLRACE_ASSIGN(const GaussianCloud cloud, read_model(options.model));
  if (cloud.count() == 0) {
    return Error{ErrorCode::Dataset, fmt::format("{} holds no Gaussians", options.model)};
  }
  std::vector<NamedCamera> cameras;
  if (!options.cameras.empty()) {
    MILLRACE_ASSIGN(cameras, read_cameras_json(options.cameras));
  }
  MILLRACE_ASSIGN(const std::unique_ptr<Device> device, open_training_device(options.device, 0));
  return export_cloud_blocking(*device, cloud, cameras,
                               fs::path(options.output) / model_stem(options.model), formats,
                               options, observer);
}

std::string export_text(const ExportedFile& file) {
  return fmt::format("{}: {:.2f} MiB in {}, {:.1f} dB from the model's views (least {:.1f})",
                     file.format, static_cast<double>(file.bytes) / (1 << 20), file.path.string(),
                     file.mean_psnr, file.least_psnr);
}

std::string model_stem(const fs::path& model) {
  const std::string name = model.filename().string();
  const Result<ModelFormat> format = format_of_path(model);
  return format.ok()
             ? name.substr(0, name.size() - std::string(format_extension(format.value())).size())
             : model.stem().string();
}

Result<std::vector<ExportedFile>> export_cloud_blocking(Device& device, const GaussianCloud& cloud,
                                                        const std::vector<NamedCamera>& cameras,
                                                        const fs::path& stem,
                                                        const std::vector<ModelFormat>& formats,
                                                        const ExportOptions& options,
                                                        const TrainObserver& observer) {
  ProvenExports exports(device, cloud, cameras);
  WriteOptions write = options.write;
  write.html.cameras = cameras;
  write.html.title = stem.filename().string();
  std::vector<ExportedFile> files;
  Result<void> outcome;
  for (const ModelFormat format : formats) {
    const fs::path path = stem.string() + format_extension(format);
    std::error_code ec;
    if (!options.overwrite && fs::exists(path, ec)) {
      return Error{ErrorCode::Usage,
                   fmt::format("{} exists; choose another folder with -o, or use --overwrite",
                               path.string())};
    }
    // One that fails does not keep the others from being made.
    const Result<ExportedFile> file = exports.write_blocking(path, format, write);
    if (!file.ok()) {
      if (observer.warning) observer.warning(file.error().message);
      if (outcome.ok()) outcome = file.error();
      continue;
    }
    files.push_back(file.value());
    if (observer.saved) observer.saved(fs::absolute(path));
  }
  if (!outcome.ok()) return outcome.error();
  return files;
}

}  // namespace millrace
