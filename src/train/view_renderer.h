// ViewRenderer: renders a settled model from any camera and brings the image to the host; for
// evaluation and for `millrace render`, outside the training loop.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "data/dataset.h"
#include "io/image_write.h"
#include "splat/render.h"

namespace millrace {

class ViewRenderer {
 public:
  /// `sizes`: of every frame to come. The model's queue must be settled while frames are rendered:
  /// they use its gate.
  ViewRenderer(const Model& model, const std::vector<FrameSize>& sizes, bool with_depth);

  struct Image {
    ImageF color;
    std::vector<float> depth, alpha;  // [H,W] each, if asked for; depth = sum w z, not normalised
  };
  /// One image, waiting for it (reason UserRead). Grows its own buffers on overflow.
  Result<Image> render_blocking(const Camera& camera, double near_plane, uint32_t sh_degree,
                                const std::array<float, 3>& background,
                                const Tensor* background_image = nullptr);

  /// [3,H,W] planes as an image.
  static ImageF interleave(const float* planes, uint32_t width, uint32_t height);

 private:
  const Model& model_;
  Workspace workspace_;
  bool with_depth_;
};

}  // namespace millrace
