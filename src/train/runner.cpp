// The loop that records ahead, and the sticky gate's host side (ARCHITECTURE.md section 4).
#include "train/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <utility>

#include "device/test_hooks.h"
#include "device/trace.h"
#include "train/train_memory.h"

namespace millrace {
namespace {

constexpr uint32_t kMaxRetries = 8;
constexpr uint32_t kPrefetchSteps = Photographs::kMostAhead;

const char* name_of(TransactionKind kind) {
  switch (kind) {
    case TransactionKind::Snapshot:
      return "snapshot";
    case TransactionKind::Eval:
      return "evaluate";
    case TransactionKind::Step:
      return "step";
    case TransactionKind::Refine:
      return "refine";
    case TransactionKind::Reorder:
      return "reorder";
  }
  return "transaction";
}

/// Shows in the trace what became of a transaction.
void mark(Device& device, const char* name, uint64_t transaction) {
  TraceRecorder* trace = device.ledger().trace();
  if (trace == nullptr) return;
  trace->instant(TraceTrack::Accepted, name,
                 {.number = {"step", static_cast<double>(step_of(transaction))}});
}

bool has_frame(uint64_t transaction) {
  const TransactionKind kind = kind_of(transaction);
  return kind == TransactionKind::Step || kind == TransactionKind::Eval;
}

}  // namespace

Runner::Runner(Device& device, const TrainOptions& options, const SceneScale& scale,
               TrainState& state, Photographs& photographs, std::vector<FrameSize> sizes,
               const EditLog* edits)
    : device_(device),
      options_(options),
      schedule_(options, scale, edits),
      state_(state),
      photographs_(photographs),
      sizes_(std::move(sizes)),
      n_train_views_(static_cast<uint32_t>(sizes_.size())),
      sampler_(options.seed, n_train_views_),
      edits_(edits),
      room_(device, options, state.workspace, sizes_.size()) {}

void Runner::plan_outputs(OutputPlan plan, const std::vector<FrameSize>& eval_sizes,
                          RunSink* sink) {
  sink_ = sink;
  sizes_.resize(n_train_views_);
  sizes_.insert(sizes_.end(), eval_sizes.begin(), eval_sizes.end());
  room_.set_view_count(sizes_.size());
  plan.n_eval_views = static_cast<uint32_t>(eval_sizes.size());
  schedule_.plan_outputs(std::move(plan));
  if (kind_of(next_) == TransactionKind::Step) next_ = schedule_.first(step_of(next_));
}

double Runner::mean_instances() const {
  return accepted_steps_ ? static_cast<double>(instance_sum_) / static_cast<double>(accepted_steps_)
                         : 0;
}

double Runner::mean_queued_steps() const {
  return recorded_steps_ ? static_cast<double>(queued_sum_) / static_cast<double>(recorded_steps_)
                         : 0;
}

uint64_t Runner::row_bound() const {
  uint64_t bound = accepted_rows_ ? accepted_rows_ : state_.model.row_capacity;
  for (const Pending& pending : pending_) {
    if (kind_of(pending.transaction) == TransactionKind::Refine) {
      const uint32_t step = step_of(pending.transaction);
      bound = schedule_.row_bound_after(step, bound, schedule_.max_cap(step));
    }
  }
  return std::min(bound, state_.model.row_capacity);
}

Result<void> Runner::run_until_blocking(uint32_t end_step, const std::atomic<bool>& stop,
                                        const std::function<void(const StepMetrics&)>& accepted) {
  const uint64_t end = transaction_id(end_step, TransactionKind::Step);
  while (next_ < end && !stop.load(std::memory_order_relaxed)) {
    // The one Pacing site: the step (or view, or snapshot) recorded kRunAhead of them ago must have
    // run.
    if (step_points_.size() == kRunAhead) {
      MILLRACE_TRY(
          device_.wait_blocking(step_points_.front(), {WaitReason::Pacing, "trainer.pacing"}));
      step_points_.erase(step_points_.begin());
    }
    MILLRACE_TRY(harvest_blocking(accepted));
    if (sink_) MILLRACE_TRY(sink_->deliver());
    pause_blocking(stop);
    MILLRACE_TRY(record_next_blocking());
  }
  return {};
}

// A pause happens once, however often its step is recorded. What is queued runs on meanwhile.
void Runner::pause_blocking(const std::atomic<bool>& stop) {
  const uint32_t step = next_step();
  if (edits_ == nullptr || step < next_pause_ || kind_of(next_) != TransactionKind::Step) return;
  next_pause_ = step + 1;
  const std::chrono::duration<double> asked(edits_->pause_seconds(step));
  if (asked.count() <= 0) return;
  const auto end = std::chrono::steady_clock::now() + asked;
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  // Nobody is told when `stop` is set (by a signal), so it is looked at ten times a second.
  const auto done = [&] { return stop.load() || std::chrono::steady_clock::now() >= end; };
  while (!device_.ledger().wait_for_blocking(lock, changed, done, std::chrono::milliseconds(100),
                                             {WaitReason::UserRead, "trainer.pause"})) {
  }
  if (sink_) sink_->paused();
}

Result<void> Runner::settle_blocking(const std::function<void(const StepMetrics&)>& accepted) {
  for (;;) {
    MILLRACE_TRY(device_.wait_blocking(device_.submit(), {WaitReason::UserRead, "trainer.settle"}));
    const uint64_t before = replays_;
    const uint64_t reached = next_;
    MILLRACE_TRY(harvest_blocking(accepted));
    if (replays_ == before && pending_.empty()) return {};
    // Something was refused: record it again, up to where the queue had come.
    while (next_ < reached) MILLRACE_TRY(record_next_blocking());
  }
}

Result<void> Runner::snapshot_now_blocking() {
  MILLRACE_TRY(record_blocking(transaction_id(next_step(), TransactionKind::Snapshot)));
  return settle_blocking(nullptr);
}

Result<void> Runner::record_next_blocking() {
  const uint64_t transaction = next_;
  MILLRACE_TRY(record_blocking(transaction));
  next_ = schedule_.next(transaction);
  return {};
}

Result<void> Runner::record_blocking(uint64_t transaction) {
  const uint32_t step = step_of(transaction);
  const TraceSpan span(device_.ledger().trace(), TraceTrack::Recorded,
                       name_of(kind_of(transaction)),
                       {.number = {"step", static_cast<double>(step)}});
  Pending pending = {transaction, epoch_, 0, {}, {}, {}, 1, {}, {}};
  pass_wait_place(WaitPlace::Trainer, device_);
  switch (kind_of(transaction)) {
    case TransactionKind::Snapshot:
      if (sink_) MILLRACE_TRY(sink_->make_snapshot_room_blocking());
      pending.step = upload_step_block(device_, schedule_.block(transaction, epoch_, 0));
      pending.snapshot = snapshot_transaction(state_, pending.step, row_bound());
      break;
    case TransactionKind::Eval:
    case TransactionKind::Step:
      MILLRACE_TRY(record_frame_blocking(pending));
      break;
    case TransactionKind::Refine:
      MILLRACE_TRY(ensure_row_room_blocking(
          schedule_.row_bound_after(step, row_bound(), schedule_.max_cap(step))));
      pending.step = upload_step_block(device_, schedule_.block(transaction, epoch_, 0));
      refine_transaction(state_, pending.step, schedule_.measures_after(step));
      break;
    case TransactionKind::Reorder:
      pending.step = upload_step_block(device_, schedule_.block(transaction, epoch_, 0));
      reorder_transaction(state_, pending.step);
      break;
  }
  pending.control = read_later(state_.model.control);
  note_queued(pending, device_.submit());
  pending_.push_back(std::move(pending));
  return {};
}

Result<void> Runner::record_frame_blocking(Pending& pending) {
  const uint32_t step = step_of(pending.transaction);
  const bool trains = kind_of(pending.transaction) == TransactionKind::Step;
  if (trains) {
    pending.view = sampler_.view_of(step);
    prefetch_ahead(step);
    pending.target = pinned_target(pending.transaction);
    if (!pending.target.defined()) {
      MILLRACE_ASSIGN(pending.target, photographs_.target_blocking(pending.view));
    }
  } else {
    pending.view = n_train_views_ + index_of(pending.transaction);
    if (sink_) MILLRACE_TRY(sink_->make_room_blocking());
  }
  MILLRACE_ASSIGN(pending.n_bands, room_.ensure_blocking(pending.view, row_bound()));
  const uint64_t capacity = room_.attempt_capacity(pending.transaction, pending.view);
  StepBlock block = schedule_.block(pending.transaction, epoch_, pending.view);
  if (trains) {
    block.appearance.camera = state_.appearance.camera_of(pending.view);
    const uint32_t upcoming[] = {sampler_.view_of(step + 1), sampler_.view_of(step + 2)};
    state_.appearance.bind(block.appearance, upcoming);
  }
  pending.step = upload_step_block(device_, block);
  const StepInputs inputs = {pending.step, pending.target, sizes_[pending.view], capacity,
                             pending.n_bands};
  if (trains) {
    train_step(state_, inputs);
  } else {
    pending.image = eval_transaction(state_, inputs);
  }
  return {};
}

// What holds memory of the host or takes a frame's time counts for the run-ahead.
void Runner::note_queued(const Pending& pending, Point point) {
  const TransactionKind kind = kind_of(pending.transaction);
  if (kind != TransactionKind::Snapshot && !has_frame(pending.transaction)) return;
  step_points_.push_back(point);
  if (step_points_.size() > kRunAhead) step_points_.erase(step_points_.begin());
  // From here on a wait for anything newer counts as a wait, whatever it calls itself.
  device_.ledger().limit_pacing(step_points_.size() == kRunAhead ? step_points_.front() : 0);
  if (kind != TransactionKind::Step) return;
  const Point passed = device_.poll();
  for (const Point queued : step_points_) queued_sum_ += queued > passed ? 1 : 0;
  ++recorded_steps_;
}

// The target of a step that was refused: it may have given way to others since.
Target Runner::pinned_target(uint64_t transaction) {
  for (Pending& refused : refused_) {
    if (refused.transaction == transaction) return std::exchange(refused.target, Target());
  }
  return {};
}

void Runner::prefetch_ahead(uint32_t step) {
  if (photographs_.all_resident()) return;
  std::array<uint32_t, kPrefetchSteps> views;
  for (uint32_t ahead = 0; ahead < kPrefetchSteps; ++ahead) {
    views[ahead] = sampler_.view_of(step + 1 + ahead);
  }
  photographs_.prefetch(views);
}

Result<void> Runner::ensure_row_room_blocking(uint64_t rows) {
  return grow_row_room_blocking(state_, rows, options_.max_cap);
}

Result<void> Runner::harvest_blocking(const std::function<void(const StepMetrics&)>& accepted) {
  while (!pending_.empty() && pending_.front().ready()) {
    const auto control = pending_.front().control.as<Control>();
    if (control.gate.closed) {
      MILLRACE_TRY(recover_blocking(control));
      return {};
    }
    const Pending pending = std::move(pending_.front());
    pending_.erase(pending_.begin());
    MILLRACE_TRY(accept(pending, control, accepted));
  }
  return {};
}

Result<void> Runner::recover_blocking(const Control& control) {
  const Gate& gate = control.gate;
  mark(device_, "refused", gate.first_rejected);
  ++replays_;
  retries_ = gate.first_rejected == retried_ ? retries_ + 1 : 1;
  retried_ = gate.first_rejected;
  if (retries_ > kMaxRetries) {
    return Error{
        ErrorCode::OutOfMemory,
        fmt::format(
            "step {} was refused {} times: it needs {} tile instances and {} rows, and {} "
            "instances "
            "of room were not enough for any part of the frame. Train at a smaller size (-r 2), "
            "lower --max-cap, free memory, or raise --instance-budget.",
            step_of(gate.first_rejected), retries_, gate.need_instances, gate.need_rows,
            state_.workspace.instances.capacity)};
  }
  MILLRACE_TRY(room_.refused_blocking(gate.first_rejected, gate.need_instances));
  const Pending& refused = pending_.front();
  if (has_frame(refused.transaction)) {
    room_.note_refused_frame(refused.view, refused.n_bands, gate.need_instances,
                             control.counts.rows);
  }
  if (gate.need_rows > state_.model.row_capacity)
    MILLRACE_TRY(ensure_row_room_blocking(gate.need_rows));
  accepted_rows_ = control.counts.rows;
  // Everything recorded since was refused too. The queue is in order, so the reopening comes after
  // all of it.
  std::erase_if(refused_, [](const Pending& p) { return !p.target.defined(); });
  refused_.insert(refused_.begin(), std::make_move_iterator(pending_.begin()),
                  std::make_move_iterator(pending_.end()));
  pending_.clear();
  next_ = gate.first_rejected;
  reopen_gate(state_.model, ++epoch_);
  return {};
}

Result<void> Runner::accept(const Pending& pending, const Control& control,
                            const std::function<void(const StepMetrics&)>& accepted) {
  accepted_rows_ = control.counts.rows;
  retries_ = 0;
  const TransactionKind kind = kind_of(pending.transaction);
  mark(device_, name_of(kind), pending.transaction);
  if (has_frame(pending.transaction)) {
    room_.accepted(pending.view, control.counts.instances, control.counts.rows);
  }
  if (kind == TransactionKind::Step) return accept_step(control.metrics, accepted);
  if (sink_ == nullptr) return {};
  const uint32_t steps = step_of(pending.transaction);
  if (kind == TransactionKind::Refine) sink_->refined(steps, control.counts);
  if (kind == TransactionKind::Snapshot) sink_->snapshot(steps, pending.snapshot);
  if (kind == TransactionKind::Eval) {
    sink_->rendered({steps, index_of(pending.transaction),
                     control.counts.rows - control.counts.free, sizes_[pending.view],
                     pending.image});
  }
  return {};
}

Result<void> Runner::accept_step(const StepMetrics& metrics,
                                 const std::function<void(const StepMetrics&)>& accepted) {
  max_instances_ = std::max(max_instances_, metrics.instances);
  instance_sum_ += metrics.instances;
  ++accepted_steps_;
  if (!std::isfinite(metrics.loss)) {
    return Error{
        ErrorCode::Diverged,
        fmt::format(
            "training diverged: the loss of step {} is not a number. Lower the learning rates "
            "or report the dataset; the last saved files are intact.",
            metrics.step)};
  }
  if (accepted) accepted(metrics);
  return {};
}

}  // namespace millrace
