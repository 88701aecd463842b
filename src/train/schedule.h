// Schedule: everything that varies with the step, in closed form, so that a replay computes the
// same.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "data/scene_scale.h"
#include "kernels/splat_params.h"
#include "train/edit_log.h"
#include "train/options.h"

namespace millrace {

/// What a transaction does. The order of the values is the order within one step: Snapshot and Eval
/// of step s show the state after s steps, before step s itself.
enum class TransactionKind : uint32_t { Snapshot = 0, Eval = 1, Step = 2, Refine = 3, Reorder = 4 };

/// Transactions are numbered by step, kind and, for an evaluation, the position of its view: 32, 8
/// and 24 bits.
constexpr uint64_t transaction_id(uint32_t step, TransactionKind kind, uint32_t index = 0) {
  return uint64_t{step} << 32 | uint64_t{static_cast<uint32_t>(kind)} << 24 | index;
}
constexpr uint32_t step_of(uint64_t transaction) {
  return static_cast<uint32_t>(transaction >> 32);
}
constexpr TransactionKind kind_of(uint64_t transaction) {
  return static_cast<TransactionKind>(transaction >> 24 & 0xFF);
}
constexpr uint32_t index_of(uint64_t transaction) {
  return static_cast<uint32_t>(transaction & 0xFFFFFF);
}

/// What a run shows while it goes on, by the number of steps done. Ascending.
struct OutputPlan {
  std::vector<uint32_t> saves, evals;
  uint32_t n_eval_views = 0;
};

class Schedule {
 public:
  /// `edits`, if given, must outlive the schedule; it may grow at steps that were not recorded yet.
  Schedule(const TrainOptions& options, const SceneScale& scale, const EditLog* edits = nullptr)
      : options_(options), scale_(scale), edits_(edits) {}

  /// Whether densification runs after `step`.
  bool refines_after(uint32_t step) const;
  /// Whether rows are put in Morton order after `step`.
  bool reorders_after(uint32_t step) const;
  /// From now on snapshots and evaluations are part of the sequence; until then none is.
  void plan_outputs(OutputPlan plan) { plan_ = std::move(plan); }
  /// The first transaction of `step`.
  uint64_t first(uint32_t step) const;
  /// The transaction that follows `transaction`.
  uint64_t next(uint64_t transaction) const;
  uint32_t sh_degree(uint32_t step) const;
  /// The highest degree that any of the first `n_steps` steps trained.
  uint32_t sh_degree_after(uint32_t n_steps) const {
    return sh_degree(n_steps == 0 ? 0 : n_steps - 1);
  }
  /// The most rows at `step`.
  uint64_t max_cap(uint32_t step) const;
  bool is_mrnf() const { return options_.strategy == "mrnf"; }
  /// Whether MRNF measures the scene's bounds at the refinement after `step`.
  bool measures_after(uint32_t step) const;
  /// A bound on the rows after the refinement that follows `step`, of at most `rows` rows and the
  /// cap `max_rows`.
  uint64_t row_bound_after(uint32_t step, uint64_t rows, uint64_t max_rows) const;
  /// The step block of `transaction`; `view` is a row of the camera table. An evaluation has the
  /// plain background and the degree of the step before.
  StepBlock block(uint64_t transaction, uint32_t epoch, uint32_t view) const;

 private:
  AppearanceStep appearance(uint32_t step, uint32_t view) const;
  uint64_t after_snapshot(uint32_t step) const;
  void set_mrnf(StepBlock& block, double bias1) const;

  const TrainOptions& options_;
  SceneScale scale_;
  const EditLog* edits_;
  OutputPlan plan_;
};

/// The background colour of `step`: `solid`, or the modulation that keeps a model from baking one
/// background in (TRAINING.md 2.7).
std::array<float, 3> background_at(const TrainOptions& options, uint32_t step,
                                   const std::array<float, 3>& solid);

/// Which training view (0..n_views-1) each step takes: a fresh random permutation per pass over the
/// views.
class ViewSampler {
 public:
  ViewSampler(uint64_t seed, uint32_t n_views) : seed_(seed), n_views_(n_views) {}
  uint32_t view_of(uint32_t step);

 private:
  const std::vector<uint32_t>& permutation(uint32_t pass);

  uint64_t seed_;
  uint32_t n_views_;
  uint32_t cached_pass_[2] = {~0u,
                              ~0u};  // a pass and its successor, for prefetching across the border
  std::vector<uint32_t> cached_[2];
};

}  // namespace millrace
