// `millrace eval` and `millrace render`: a PLY seen from a dataset's views, or from cameras.json.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>

#include "formats/model_file.h"
#include "io/cameras_json.h"
#include "train/evaluation.h"
#include "train/mask_settings.h"
#include "train/open_device.h"
#include "train/output.h"
#include "train/scene.h"
#include "train/trainer.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

// For models that come without their dataset: the near plane in units of the median distance of the
// Gaussians from their mean would move with floaters, so it is a fixed small part of the camera's
// distance to them.
double near_plane_of(const std::vector<NamedCamera>& cameras, const GaussianCloud& cloud) {
  std::array<double, 3> mean = {};
  for (uint64_t i = 0; i < cloud.count(); ++i) {
    for (size_t k = 0; k < 3; ++k)
      mean[k] += cloud.means[3 * i + k] / static_cast<double>(cloud.count());
  }
  double nearest = INFINITY;
  for (const NamedCamera& camera : cameras) {
    const std::array<double, 3> centre = camera_centre(camera.camera);
    double d2 = 0;
    for (size_t k = 0; k < 3; ++k) d2 += (centre[k] - mean[k]) * (centre[k] - mean[k]);
    nearest = std::min(nearest, std::sqrt(d2));
  }
  return std::max(kNearPlane * 0.1 * nearest, 1e-6);
}

Result<GaussianCloud> read_any_model(const std::string& file) {
  MILLRACE_ASSIGN(GaussianCloud cloud, read_model(file));
  if (cloud.count() > 0) return cloud;
  return Error{ErrorCode::Dataset, fmt::format("{} holds no Gaussians", file)};
}

Result<void> refuse_earlier(const fs::path& file, bool overwrite) {
  std::error_code ec;
  if (overwrite || !fs::exists(file, ec)) return {};
  return Error{
      ErrorCode::Usage,
      fmt::format("{} exists; choose another folder with -o, or use --overwrite", file.string())};
}

}  // namespace

Result<EvalResult> evaluate_model(const EvalOptions& options, const TrainObserver& observer) {
  MILLRACE_ASSIGN(const GaussianCloud cloud, read_any_model(options.model));
  MILLRACE_ASSIGN(const Dataset dataset,
                  load_dataset(options.dataset, dataset_options(options.data)));
  OutputFolder folder;
  const bool writes = !options.output.empty();
  if (writes) {
    folder.root = options.output;
    MILLRACE_TRY(refuse_earlier(folder.contact_sheet(), options.overwrite));
  }
  MILLRACE_ASSIGN(const std::unique_ptr<Device> device,
                  open_training_device(options.device, options.data.threads));
  if (observer.loaded) observer.loaded(dataset, device->info());
  std::vector<View> views;
  for (const View& view : dataset.views) {
    if (view.held_out || options.all_views) views.push_back(view);
  }
  if (views.empty()) {
    return Error{ErrorCode::Usage, "no view is held out; use --all-views or --test-every"};
  }
  ImageLoaderOptions loader;
  loader.background = options.data.bg_color;
  loader.cache_bytes = 256u << 20;
  ImageLoader photographs(views, loader, device->ledger());
  const Model model = make_model(*device, cloud, cloud.sh_degree, cloud.count());
  const EvaluationInputs inputs = {model,
                                   views,
                                   photographs,
                                   kNearPlane * scene_scale(dataset).normaliser,
                                   static_cast<uint32_t>(cloud.sh_degree),
                                   options.data.bg_color,
                                   mask_settings(options.data)};
  MILLRACE_ASSIGN(Evaluation evaluation,
                  evaluate_blocking(inputs, writes ? &folder : nullptr, observer.warning));
  evaluation.result.gaussians = cloud.count();
  if (writes) {
    MILLRACE_TRY(write_contact_sheet(folder.contact_sheet(), evaluation.contact_rows));
    MILLRACE_TRY(write_stats(folder, evaluation.result));
    if (observer.saved) observer.saved(fs::absolute(folder.contact_sheet()));
  }
  if (observer.evaluated) observer.evaluated(evaluation.result);
  return evaluation.result;
}

Result<double> evaluate_initial_points(const std::string& dataset_path,
                                       const std::string& device_id) {
  TrainOptions options;
  options.init_scaling = 1;
  options.init_opacity = 0.9;
  options.sh_degree = 0;
  MILLRACE_ASSIGN(const Dataset dataset, load_dataset(dataset_path, dataset_options(options)));
  MILLRACE_ASSIGN(const std::unique_ptr<Device> device, open_training_device(device_id, 0));
  std::vector<View> views;
  std::copy_if(dataset.views.begin(), dataset.views.end(), std::back_inserter(views),
               [](const View& view) { return view.held_out; });
  ImageLoader photographs(views, ImageLoaderOptions(), device->ledger());
  const GaussianCloud cloud = initial_cloud(dataset, options, nullptr);
  const Model model = make_model(*device, cloud, 0, cloud.count());
  const double near_plane = kNearPlane * scene_scale(dataset).normaliser;
  MILLRACE_ASSIGN(
      const Evaluation evaluation,
      evaluate_blocking({model, views, photographs, near_plane, 0, options.bg_color, {}}, nullptr,
                        nullptr));
  return evaluation.result.psnr;
}

Result<RenderResult> render_model(const RenderOptions& options, const TrainObserver& observer) {
  MILLRACE_ASSIGN(const GaussianCloud cloud, read_any_model(options.model));
  MILLRACE_ASSIGN(const std::vector<NamedCamera> cameras, read_cameras_json(options.cameras));
  if (cameras.empty()) {
    return Error{ErrorCode::Dataset, fmt::format("{} lists no camera", options.cameras)};
  }
  std::set<fs::path> files;
  for (const NamedCamera& camera : cameras) {
    if (files.insert(fs::path(camera.name).replace_extension(".png")).second) continue;
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: two cameras would be rendered to one file, the second for img_name '{}'; "
                    "rename one",
                    options.cameras, camera.name)};
  }
  MILLRACE_ASSIGN(const std::unique_ptr<Device> device, open_training_device(options.device, 0));
  std::vector<FrameSize> sizes;
  sizes.reserve(cameras.size());
  for (const NamedCamera& camera : cameras) sizes.push_back(frame_size(camera.camera));
  const Model model = make_model(*device, cloud, cloud.sh_degree, cloud.count());
  ViewRenderer renderer(model, sizes, options.depth);
  const double near_plane = near_plane_of(cameras, cloud);
  RenderResult result;
  double seconds = 0;
  for (const NamedCamera& camera : cameras) {
    const fs::path file = (fs::path(options.output) / camera.name).replace_extension(".png");
    MILLRACE_TRY(refuse_earlier(file, options.overwrite));
    const auto begin = std::chrono::steady_clock::now();
    MILLRACE_ASSIGN(
        const ViewRenderer::Image image,
        renderer.render_blocking(camera.camera, near_plane, static_cast<uint32_t>(cloud.sh_degree),
                                 options.bg_color));
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    MILLRACE_TRY(options.png16 ? write_png16(file, image.color)
                               : write_png8(file, to_8bit(image.color)));
    if (options.depth) {
      // Depth normalised by alpha and by the largest depth of the image; 16 bits.
      ImageF depth = {image.color.width, image.color.height, {}};
      float largest = 0;
      for (size_t i = 0; i < image.depth.size(); ++i) {
        const float z = image.alpha[i] > 1e-3f ? image.depth[i] / image.alpha[i] : 0.0f;
        largest = std::max(largest, z);
        depth.pixels.insert(depth.pixels.end(), 3, z);
      }
      for (float& z : depth.pixels) z = largest > 0 ? z / largest : 0;
      fs::path depth_file = file;
      depth_file.replace_extension(".depth.png");
      MILLRACE_TRY(write_png16(depth_file, depth));
    }
    if (observer.saved) observer.saved(fs::absolute(file));
    ++result.n_images;
  }
  result.frames_per_second = seconds > 0 ? result.n_images / seconds : 0;
  return result;
}

}  // namespace millrace
