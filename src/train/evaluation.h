// Evaluation: renders of held-out views, their scores, and the pictures that go with them.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include "data/image_loader.h"
#include "io/image_write.h"
#include "io/metrics.h"
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
  LossStep masks = {};  // how masks count in the scores, of views that have one
};

struct Evaluation {
  EvalResult result;
  std::vector<ContactRow> contact_rows;  // at most kContactRows, spread over the views
};
constexpr size_t kContactRows = 12;

/// Collects the scores and pictures of one evaluation, view by view.
class ViewScores {
 public:
  /// Renders go to `folder`'s renders/ as 16-bit PNG, or nowhere if it is null.
  /// Scores count the pixels that masks keep, as `masks` says, of views that have one.
  ViewScores(uint32_t n_views, const OutputFolder* folder, const LossStep& masks = {})
      : n_views_(n_views), folder_(folder), masks_(masks) {}

  /// Takes the render of the `index`-th view. `photograph` may be an error: then the view has no
  /// score, nor has one whose mask keeps nothing. Error: Output.
  Result<void> add(uint32_t index, const View& view, const ImageF& render,
                   const Result<std::shared_ptr<const Image8>>& photograph);
  /// Means over the views that have a score; steps, gaussians and seconds are left to the caller.
  Evaluation take();

 private:
  uint32_t n_views_;
  const OutputFolder* folder_;
  LossStep masks_;
  std::vector<FileScore> scores_;
  std::vector<ContactRow> contact_rows_;
  std::set<std::filesystem::path> files_;
};

/// Host memory that ViewScores and its caller take to score views, beside the render's ticket:
/// while one view is scored, and for the pictures that are kept.
uint64_t scoring_bytes(const std::vector<View>& views);

/// Renders and scores every view; writes renders/ as 16-bit PNG if `folder` is given. The queue
/// must be settled. A photograph that cannot be decoded is left out with a warning through `warn`.
Result<Evaluation> evaluate_blocking(const EvaluationInputs& inputs, const OutputFolder* folder,
                                     const std::function<void(const std::string&)>& warn);

}  // namespace millrace
