// Rendering and scoring held-out views.
#include "train/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "train/scene.h"

namespace millrace {
namespace {

// Contact sheets show small pictures, so only small ones are kept.
Image8 thumbnail(const Image8& image) {
  constexpr uint32_t kLongest = 640;
  const uint32_t longest = std::max(image.width, image.height);
  if (longest <= kLongest) return image;
  const auto scaled = [&](uint32_t side) {
    return std::max(1u, static_cast<uint32_t>(uint64_t{side} * kLongest / longest));
  };
  return resize_image(image, scaled(image.width), scaled(image.height));
}

}  // namespace

Result<Evaluation> evaluate_blocking(const EvaluationInputs& in, const OutputFolder* folder,
                                     const std::function<void(const std::string&)>& warn) {
  Evaluation evaluation;
  std::vector<FrameSize> sizes;
  for (const View& view : in.views) sizes.push_back(frame_size(view.camera));
  if (sizes.empty()) return evaluation;
  ViewRenderer renderer(in.model, sizes, /*with_depth=*/false);
  std::vector<FileScore> scores;
  std::set<std::filesystem::path> files;
  const size_t stride = (in.views.size() + kContactRows - 1) / kContactRows;
  in.photographs.prefetch(0);
  for (uint32_t i = 0; i < in.views.size(); ++i) {
    const View& view = in.views[i];
    if (i + 1 < in.views.size()) in.photographs.prefetch(i + 1);
    const auto begin = std::chrono::steady_clock::now();
    const Tensor* picture =
        in.background_images ? in.background_images->of(frame_size(view.camera)) : nullptr;
    MILLRACE_ASSIGN(
        const ViewRenderer::Image image,
        renderer.render_blocking(view.camera, in.near_plane, in.sh_degree, in.background, picture));
    evaluation.result.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (folder) {
      // a.jpg and a.png in one capture: the second keeps its whole name.
      std::filesystem::path file = folder->render(view.name);
      if (!files.insert(file).second) file = folder->render(view.name + ".png");
      MILLRACE_TRY(write_png16(file, image.color));
    }
    const auto photograph = in.photographs.get_blocking(i);
    if (!photograph) {
      if (warn) warn(photograph.error().message);
      continue;
    }
    scores.push_back({view.name, score_image(image.color, to_float(*photograph.value()))});
    if (i % stride == 0) {
      evaluation.contact_rows.push_back(
          {fmt::format("{}  {:.2f} dB", view.name, scores.back().score.psnr),
           thumbnail(*photograph.value()), thumbnail(to_8bit(image.color))});
    }
  }
  const ImageScore mean = mean_score(scores);
  evaluation.result.psnr = mean.psnr;
  evaluation.result.ssim = mean.ssim;
  evaluation.result.psnr_cc = mean.psnr_cc;
  evaluation.result.psnr_gain = mean.psnr_gain;
  evaluation.result.n_views = static_cast<uint32_t>(scores.size());
  return evaluation;
}

}  // namespace millrace
