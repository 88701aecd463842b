// Rendering and scoring held-out views.
#include "train/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "train/mask_settings.h"
#include "train/scene.h"

namespace millrace {
namespace {

// Contact sheets show small pictures, so only small ones are kept.
ImageSize thumbnail_size(uint32_t width, uint32_t height) {
  constexpr uint32_t kLongest = 640;
  const uint32_t longest = std::max(width, height);
  if (longest <= kLongest) return {width, height};
  const auto scaled = [&](uint32_t side) {
    return std::max(1u, static_cast<uint32_t>(uint64_t{side} * kLongest / longest));
  };
  return {scaled(width), scaled(height)};
}

Image8 thumbnail(const Image8& image) {
  const ImageSize size = thumbnail_size(image.width, image.height);
  if (size.width == image.width && size.height == image.height) return image;
  return resize_image(image, size.width, size.height);
}

}  // namespace

Result<void> ViewScores::add(uint32_t index, const View& view, const ImageF& render,
                             const Result<std::shared_ptr<const Image8>>& photograph) {
  if (folder_) {
    // a.jpg and a.png in one capture: the second keeps its whole name.
    std::filesystem::path file = folder_->render(view.name);
    if (!files_.insert(file).second) file = folder_->render(view.name + ".png");
    MILLRACE_TRY(write_png16(file, render));
  }
  if (!photograph.ok()) return {};
  const Image8& photo = *photograph.value();
  const std::vector<float> weights = mask_weights(photo.mask, masks_);
  const bool counts =
      weights.empty() || std::ranges::any_of(weights, [](float w) { return w > 0; });
  if (!counts) return {};
  scores_.push_back({view.name, score_image(render, to_float(photo), weights)});
  const size_t stride = (n_views_ + kContactRows - 1) / kContactRows;
  if (index % stride == 0) {
    contact_rows_.push_back({fmt::format("{}  {:.2f} dB", view.name, scores_.back().score.psnr),
                             thumbnail(photo), thumbnail(to_8bit(render))});
  }
  return {};
}

Evaluation ViewScores::take() {
  const ImageScore mean = mean_score(scores_);
  Evaluation evaluation;
  evaluation.result.psnr = mean.psnr;
  evaluation.result.ssim = mean.ssim;
  evaluation.result.psnr_cc = mean.psnr_cc;
  evaluation.result.psnr_gain = mean.psnr_gain;
  evaluation.result.n_views = static_cast<uint32_t>(scores_.size());
  evaluation.contact_rows = std::move(contact_rows_);
  return evaluation;
}

Result<Evaluation> evaluate_blocking(const EvaluationInputs& in, const OutputFolder* folder,
                                     const std::function<void(const std::string&)>& warn) {
  std::vector<FrameSize> sizes;
  for (const View& view : in.views) sizes.push_back(frame_size(view.camera));
  if (sizes.empty()) return Evaluation();
  ViewRenderer renderer(in.model, sizes, /*with_depth=*/false);
  ViewScores scores(static_cast<uint32_t>(in.views.size()), folder, in.masks);
  double seconds = 0;
  in.photographs.prefetch(0);
  for (uint32_t i = 0; i < in.views.size(); ++i) {
    const View& view = in.views[i];
    if (i + 1 < in.views.size()) in.photographs.prefetch(i + 1);
    const auto begin = std::chrono::steady_clock::now();
    MILLRACE_ASSIGN(
        const ViewRenderer::Image image,
        renderer.render_blocking(view.camera, in.near_plane, in.sh_degree, in.background));
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const auto photograph = in.photographs.get_blocking(i);
    if (!photograph.ok() && warn) warn(photograph.error().message);
    MILLRACE_TRY(scores.add(i, view, image.color, photograph));
  }
  Evaluation evaluation = scores.take();
  evaluation.result.seconds = seconds;
  evaluation.result.frames_per_second =
      seconds > 0 ? static_cast<double>(in.views.size()) / seconds : 0;
  return evaluation;
}

uint64_t scoring_bytes(const std::vector<View>& views) {
  uint64_t most = 0, picture = 0;
  for (const View& view : views) {
    const uint64_t samples = uint64_t{3} * view.camera.width * view.camera.height;
    // The photograph, and as float32 the render and the photograph; score_image() adds three.
    const uint64_t weights = has_mask(view) ? samples / 3 + 2 * sizeof(float) * samples / 3
                                            : 0;  // a mask, and its weights twice
    const uint64_t scoring = samples + weights + 5 * samples * sizeof(float);
    most = std::max({most, scoring, load_view_bytes(view) + samples * sizeof(float)});
    const ImageSize small = thumbnail_size(view.camera.width, view.camera.height);
    picture = std::max(picture, uint64_t{3} * small.width * small.height);
  }
  return most + 2 * std::min(kContactRows, views.size()) * picture;
}

}  // namespace millrace
