// Evaluation: renders of held-out views, their scores, and the pictures that go with them.
#pragma once

#include <vector>

#include "data/image_loader.h"
#include "io/image_write.h"
#include "io/metrics.h"
#include "train/background_image.h"
#include "train/output.h"
#include "train/view_renderer.h"

namespace millrace {

/// What to evaluate on.
struct EvaluationInputs {
  const Model& model;
  const std::vector<View>& views;  // the held-out ones
  ImageLoader& photographs;        // over the same views, in the same order
  double near_plane = 0;
  uint32_t sh_degree = 3;
  std::array<float, 3> background = {0, 0, 0};
  const BackgroundImages* background_images = nullptr;  // instead of the colour, where given
};

struct Evaluation {
  EvalResult result;
  std::vector<ContactRow> contact_rows;  // at most kContactRows, spread over the views
};
constexpr size_t kContactRows = 12;

/// Renders and scores every view; writes renders/ as 16-bit PNG if `folder` is given. The queue
/// must be settled. A photograph that cannot be decoded is left out with a warning through `warn`.
Result<Evaluation> evaluate_blocking(const EvaluationInputs& inputs, const OutputFolder* folder,
                                     const std::function<void(const std::string&)>& warn);

}  // namespace millrace
