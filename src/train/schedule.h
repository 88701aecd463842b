// Schedule: everything that varies with the step, in closed form, so that a replay computes the
// same.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/scene_scale.h"
#include "kernels/splat_params.h"
#include "train/edit_log.h"
#include "train/options.h"

namespace millrace {

/// What a transaction does. The order of the values is the order within one step.
enum class TransactionKind : uint32_t { Step = 0, Refine = 1, Reorder = 2 };

/// Transactions are numbered 4 x step + kind.
constexpr uint64_t transaction_id(uint32_t step, TransactionKind kind) {
  return uint64_t{step} * 4 + static_cast<uint64_t>(kind);
}
constexpr uint32_t step_of(uint64_t transaction) { return static_cast<uint32_t>(transaction / 4); }
constexpr TransactionKind kind_of(uint64_t transaction) {
  return static_cast<TransactionKind>(transaction % 4);
}

class Schedule {
 public:
  /// `edits`, if given, must outlive the schedule; it may grow at steps that were not recorded yet.
  Schedule(const TrainOptions& options, const SceneScale& scale, const EditLog* edits = nullptr)
      : options_(options), scale_(scale), edits_(edits) {}

  /// Whether densification runs after `step`.
  bool refines_after(uint32_t step) const;
  /// Whether rows are put in Morton order after `step`.
  bool reorders_after(uint32_t step) const;
  /// The transaction that follows `transaction`.
  uint64_t next(uint64_t transaction) const;
  uint32_t sh_degree(uint32_t step) const;
  /// The most rows at `step`.
  uint64_t max_cap(uint32_t step) const;
  /// The step block of `transaction`; `view` is a row of the camera table.
  StepBlock block(uint64_t transaction, uint32_t epoch, uint32_t view) const;

 private:
  const TrainOptions& options_;
  SceneScale scale_;
  const EditLog* edits_;
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
