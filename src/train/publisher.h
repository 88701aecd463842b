// Publisher: turns snapshots and rendered views into files and scores on a worker thread, so that
// training goes on meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/worker_pool.h"
#include "data/image.h"
#include "device/trace.h"
#include "train/evaluation.h"
#include "train/output.h"
#include "train/run_sink.h"
#include "train/trainer.h"

namespace millrace {

/// All calls from the training thread; observers are called there too, from deliver() and
/// finish_blocking().
class Publisher {
 public:
  static constexpr uint64_t kMostWaitingBytes = 256u << 20;

  struct Setup {
    OutputFolder folder;
    std::vector<View> eval_views;                 // held out, in the order of RenderedView::view
    std::array<float, 3> background = {0, 0, 0};  // behind photographs with alpha
    double decode_delay_ms = 0;                   // tests: makes every decode slower
    uint32_t last_step = 0;                       // its renders are kept as files
    uint64_t most_waiting_bytes = kMostWaitingBytes;  // of images that are not yet scored
    LossStep masks = {};                              // how masks count in the scores
    bool mip_filter = false;                          // the models are marked
  };
  /// `device` and `observer` must outlive the publisher.
  Publisher(Setup setup, Device& device, const TrainObserver& observer);

  /// Whether make_room_blocking() would wait, and make_snapshot_room_blocking().
  bool has_room();
  bool has_snapshot_room();
  /// Waits (reason UserRead) while more than Setup::most_waiting_bytes are waiting.
  Result<void> make_room_blocking();
  /// Waits (reason UserRead) until every snapshot that was handed over is saved.
  Result<void> make_snapshot_room_blocking();
  /// Takes the views of an evaluation in their order.
  void rendered(const RenderedView& view);
  void snapshot(uint32_t steps, ModelSnapshot snapshot);
  /// Tells the observer what is done. Errors, the first one: Output; Diverged if most rows of a
  /// snapshot hold no numbers (the rest is saved).
  Result<void> deliver();
  /// Waits (reason UserRead) until everything is done, and delivers it. An evaluation of which not
  /// all views came is dropped.
  Result<void> finish_blocking();

  /// The last evaluation that was delivered; n_views is 0 before the first.
  const EvalResult& last_eval() const { return last_eval_; }
  /// Its pictures.
  const std::vector<ContactRow>& contact_rows() const { return contact_rows_; }
  /// The last PLY that was delivered, or empty.
  const std::filesystem::path& ply() const { return ply_; }

 private:
  using Report = std::function<void()>;

  /// Runs `job` on the worker; its error is delivered.
  void post(std::function<Result<void>()> job);
  void report(Report report);  // from the worker
  Result<void> save(uint32_t steps, const ModelSnapshot& snapshot);
  Result<void> score(const RenderedView& view, double seconds);
  Result<std::shared_ptr<const Image8>> photograph_of(const View& view);
  void publish(Evaluation evaluation);

  const Setup setup_;
  Device& device_;
  const TrainObserver& observer_;
  std::chrono::steady_clock::time_point eval_begin_ = {};
  bool evaluating_ = false;
  EvalResult last_eval_;
  std::vector<ContactRow> contact_rows_;
  std::filesystem::path ply_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint64_t waiting_bytes_ = 0;
  uint32_t n_waiting_snapshots_ = 0;
  uint32_t n_jobs_ = 0;
  std::vector<Report> reports_;
  Error error_;
  bool failed_ = false;
  std::atomic<bool> has_news_ = false;

  // Of the worker.
  TraceRecorder* const trace_;  // null unless a trace is wanted
  TraceTrack decodes_ = {};
  std::unique_ptr<ViewScores> scores_;
  WorkerPool worker_{1};  // last: its thread uses all of the above
};

/// Host memory that saving a snapshot takes beside it.
uint64_t saving_bytes(int sh_degree);

}  // namespace millrace
