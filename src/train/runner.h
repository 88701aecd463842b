// Runner: keeps the queue fed, reads results late, and replays from the first transaction that the
// gate refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "train/instance_room.h"
#include "train/photographs.h"
#include "train/run_sink.h"
#include "train/schedule.h"
#include "train/train_step.h"

namespace millrace {

/// How far the host may record ahead of the device, in steps.
constexpr uint32_t kRunAhead = 3;

class Runner {
 public:
  /// `sizes`: frame size of each training view. All references must outlive the runner.
  Runner(Device& device, const TrainOptions& options, const SceneScale& scale, TrainState& state,
         Photographs& photographs, std::vector<FrameSize> sizes, const EditLog* edits = nullptr);

  /// From now on the run also snapshots and evaluates as planned and hands the results to `sink`
  /// (kept). `eval_sizes`: frame sizes of the held-out views, which follow the training views in
  /// the camera table.
  void plan_outputs(OutputPlan plan, const std::vector<FrameSize>& eval_sizes, RunSink* sink);

  /// Records steps until `end_step` (exclusive; what is planned to be shown after that many steps
  /// is recorded too) or `stop`; `accepted` is called for every accepted step, some steps late.
  /// Returns with work in flight. Errors: an unreadable photograph; Diverged; OutOfMemory; the
  /// sink's.
  Result<void> run_until_blocking(uint32_t end_step, const std::atomic<bool>& stop,
                                  const std::function<void(const StepMetrics&)>& accepted);
  /// Waits (reason UserRead) until everything recorded was accepted, replaying what must be.
  Result<void> settle_blocking(const std::function<void(const StepMetrics&)>& accepted);
  /// Hands the sink a snapshot of the state as it is; everything recorded must have been accepted.
  Result<void> snapshot_now_blocking();

  /// The next step to be recorded.
  uint32_t next_step() const { return step_of(next_); }
  uint64_t replays() const { return replays_; }
  /// A bound on N, counting every refinement queued so far.
  uint64_t row_bound() const;
  uint64_t max_instances() const { return max_instances_; }
  double mean_instances() const;
  /// Steps on the queue that the device had not finished just after one was recorded; the mean.
  double mean_queued_steps() const;
  /// The most bands that a frame was drawn in; 1: none was divided.
  uint32_t most_bands() const { return room_.most_bands(); }
  uint32_t epoch() const { return epoch_; }

 private:
  /// A transaction that was recorded and not yet accepted; it pins its inputs.
  struct Pending {
    uint64_t transaction;
    uint32_t epoch;
    uint32_t view;
    Ticket control;
    Tensor step;
    Target target;
    uint32_t n_bands;
    Ticket image;            // of an evaluation
    ModelSnapshot snapshot;  // of a snapshot
    bool ready() const {
      return control.ready() && (!image || image.ready()) &&
             (!snapshot.control || snapshot.ready());
    }
  };

  void pause_blocking(const std::atomic<bool>& stop);
  Result<void> record_next_blocking();
  Result<void> record_blocking(uint64_t transaction);
  Result<void> record_frame_blocking(Pending& pending);
  void note_queued(const Pending& pending, Point point);
  Target pinned_target(uint64_t transaction);
  void prefetch_ahead(uint32_t step);
  Result<void> ensure_row_room_blocking(uint64_t rows);
  Result<void> harvest_blocking(const std::function<void(const StepMetrics&)>& accepted);
  Result<void> accept_step(const StepMetrics& metrics,
                           const std::function<void(const StepMetrics&)>& accepted);
  Result<void> recover_blocking(const Control& control);
  Result<void> accept(const Pending& pending, const Control& control,
                      const std::function<void(const StepMetrics&)>& accepted);

  Device& device_;
  const TrainOptions& options_;
  Schedule schedule_;
  TrainState& state_;
  Photographs& photographs_;
  std::vector<FrameSize> sizes_;  // of the training views, then of the held-out ones
  uint32_t n_train_views_;
  ViewSampler sampler_;
  RunSink* sink_ = nullptr;

  const EditLog* edits_;
  uint32_t next_pause_ = 0;  // the first step that may still pause the run
  uint64_t next_ = transaction_id(0, TransactionKind::Step);
  uint32_t epoch_ = 0;
  // Both are a few entries long, oldest first: vectors, which keep their memory from step to step.
  std::vector<Pending> pending_;
  std::vector<Pending> refused_;    // whose targets are still to be used
  std::vector<Point> step_points_;  // of the last kRunAhead frames or snapshots recorded
  uint64_t accepted_rows_ = 0;      // N of the last accepted transaction
  InstanceRoom room_;
  uint64_t retried_ = kNoTransaction;  // transaction of the last replay, and how often in a row
  uint32_t retries_ = 0;
  uint64_t replays_ = 0, max_instances_ = 0, instance_sum_ = 0, accepted_steps_ = 0,
           recorded_steps_ = 0, queued_sum_ = 0;
};

}  // namespace millrace
