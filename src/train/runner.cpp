// The loop that records ahead, and the sticky gate's host side (ARCHITECTURE.md section 4).
#include "train/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/philox.h"
#include "device/test_hooks.h"
#include "device/trace.h"

namespace millrace {
namespace {

constexpr uint32_t kMaxRetries = 8;
constexpr uint64_t kGrowthFloor = 65536;  // instances
constexpr uint64_t kMostInstances = 1ull << 30;
constexpr uint32_t kPrefetchSteps = 16;

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

uint64_t grown(uint64_t need) { return std::max(need + need / 4, need + kGrowthFloor); }

uint64_t instances_within(uint64_t bytes) {
  return std::max<uint64_t>(bytes / instance_bytes(/*with_gradients=*/true), 1);
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
      view_instances_(sizes_.size()),
      view_rows_(sizes_.size()),
      view_bands_(sizes_.size(), 1),
      forced_used_(options.test_capacity.size()) {}

void Runner::plan_outputs(OutputPlan plan, const std::vector<FrameSize>& eval_sizes,
                          RunSink* sink) {
  sink_ = sink;
  sizes_.resize(n_train_views_);
  sizes_.insert(sizes_.end(), eval_sizes.begin(), eval_sizes.end());
  view_instances_.resize(sizes_.size());
  view_rows_.resize(sizes_.size());
  view_bands_.resize(sizes_.size(), 1);
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
      bound = mcmc_row_bound(bound, schedule_.max_cap(step_of(pending.transaction)));
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
    MILLRACE_TRY(harvest(accepted));
    if (sink_) MILLRACE_TRY(sink_->deliver());
    MILLRACE_TRY(record_next_blocking());
  }
  return {};
}

Result<void> Runner::settle_blocking(const std::function<void(const StepMetrics&)>& accepted) {
  for (;;) {
    MILLRACE_TRY(device_.wait_blocking(device_.submit(), {WaitReason::UserRead, "trainer.settle"}));
    const uint64_t before = replays_;
    const uint64_t reached = next_;
    MILLRACE_TRY(harvest(accepted));
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
      pending.step = upload_step_block(device_, schedule_.block(transaction, epoch_, 0));
      pending.snapshot = snapshot_transaction(state_, pending.step, row_bound());
      break;
    case TransactionKind::Eval:
    case TransactionKind::Step:
      MILLRACE_TRY(record_frame_blocking(pending));
      break;
    case TransactionKind::Refine:
      MILLRACE_TRY(ensure_row_room(mcmc_row_bound(row_bound(), schedule_.max_cap(step))));
      pending.step = upload_step_block(device_, schedule_.block(transaction, epoch_, 0));
      refine_transaction(state_, pending.step);
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
    MILLRACE_ASSIGN(pending.target, photographs_.target_blocking(pending.view));
  } else {
    pending.view = n_train_views_ + index_of(pending.transaction);
    if (sink_) MILLRACE_TRY(sink_->make_room_blocking());
  }
  pending.n_bands = ensure_instance_room(pending.view);
  const uint64_t capacity = attempt_capacity(pending.transaction, pending.view);
  pending.step =
      upload_step_block(device_, schedule_.block(pending.transaction, epoch_, pending.view));
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

void Runner::prefetch_ahead(uint32_t step) {
  if (photographs_.all_resident()) return;
  std::array<uint32_t, kPrefetchSteps> views;
  for (uint32_t ahead = 0; ahead < kPrefetchSteps; ++ahead) {
    views[ahead] = sampler_.view_of(step + 1 + ahead);
  }
  photographs_.prefetch(views);
}

// Tests may cut the capacity of the first attempt of a frame that finds the gate open. Placement
// stays as it is.
uint64_t Runner::attempt_capacity(uint64_t transaction, uint32_t view) {
  const uint32_t step = step_of(transaction);
  const bool trains = kind_of(transaction) == TransactionKind::Step;
  for (size_t i = 0; trains && i < options_.test_capacity.size(); ++i) {
    if (options_.test_capacity[i].step != step || forced_used_[i]) continue;
    forced_used_[i] = true;
    return std::max<uint64_t>(options_.test_capacity[i].capacity, 1);
  }
  const bool is_new = random_drawn_ == kNoTransaction || transaction > random_drawn_;
  if (options_.test_capacity_random > 0 && is_new) {
    random_drawn_ = transaction;
    const auto row = static_cast<uint32_t>(transaction);
    const auto words = philox(options_.seed, step, RandomPurpose::TestCapacity, row);
    if (uniform_open(words[0]) < options_.test_capacity_random) {
      const uint64_t need = std::max<uint64_t>(view_instances_[view], 1);
      return 1 + static_cast<uint64_t>(uniform_open(words[1]) * static_cast<float>(need));
    }
  }
  return 0;
}

// What the budget, the device's memory and 32-bit slots leave for instances.
uint64_t Runner::instance_limit() const {
  uint64_t limit = kMostInstances;
  if (options_.instance_budget > 0)
    limit = std::min(limit, instances_within(options_.instance_budget));
  const MemoryStats memory = device_.memory();
  const uint64_t total = device_.info().memory_bytes;
  const uint64_t ours = state_.workspace.instances.capacity * instance_bytes(true);
  const uint64_t others = memory.in_use_bytes - std::min(ours, memory.in_use_bytes);
  if (total > 0)
    limit = std::min(limit, instances_within((total - std::min(others, total)) / 10 * 9));
  return limit;
}

// The view's high-water mark, scaled by how much the model has grown since, and a quarter.
uint64_t Runner::predicted_instances(uint32_t view) const {
  if (view_rows_[view] == 0) return 0;
  const double growth = static_cast<double>(row_bound()) / static_cast<double>(view_rows_[view]);
  return static_cast<uint64_t>(static_cast<double>(view_instances_[view]) * growth * 1.25);
}

void Runner::grow_instances(uint64_t capacity) {
  InstanceBuffers& instances = state_.workspace.instances;
  if (capacity <= instances.capacity) return;
  instances = InstanceBuffers();  // first, so that both are never held
  instances = make_instance_buffers(device_, capacity, state_.workspace.pixels.n_tiles, true);
}

// Makes room for the view's frame and returns in how many bands it is to be drawn.
uint32_t Runner::ensure_instance_room(uint32_t view) {
  const uint64_t predicted = predicted_instances(view);
  uint32_t n_bands = view_rows_[view] == 0 ? most_bands_ : view_bands_[view];
  if (predicted > state_.workspace.instances.capacity) {
    // The limit is asked for until it binds, not in every step of a run that lives with bands.
    if (!at_limit_) {
      const uint64_t limit = instance_limit();
      grow_instances(std::min(predicted, limit));
      at_limit_ = predicted > limit;
    }
    // Each band but the last may lack room for one tile more: a quarter and one band to spare.
    const uint64_t capacity = state_.workspace.instances.capacity;
    if (predicted > capacity) {
      const uint64_t wanted = predicted * 5 / 4 / capacity + 2;
      n_bands = static_cast<uint32_t>(std::clamp<uint64_t>(wanted, n_bands, kMaxBands));
    }
  }
  most_bands_ = std::max(most_bands_, n_bands);
  return n_bands;
}

Result<void> Runner::ensure_row_room(uint64_t rows) {
  if (rows <= state_.model.row_capacity) return {};
  const uint64_t wanted = std::min(2 * state_.model.row_capacity, std::max(options_.max_cap, rows));
  grow_rows(state_.model, std::max(wanted, rows));
  rebuild_row_buffers();
  return {};
}

void Runner::rebuild_row_buffers() {
  state_.workspace.rows = RowBuffers();
  state_.workspace.rows = make_row_buffers(device_, state_.model.row_capacity);
  state_.refinement = McmcScratch();
  state_.refinement = make_mcmc_scratch(state_.model);
}

Result<void> Runner::harvest(const std::function<void(const StepMetrics&)>& accepted) {
  while (!pending_.empty() && pending_.front().ready()) {
    const auto control = pending_.front().control.as<Control>();
    if (control.gate.closed) {
      MILLRACE_TRY(recover(control));
      return {};
    }
    const Pending pending = std::move(pending_.front());
    pending_.erase(pending_.begin());
    MILLRACE_TRY(accept(pending, control, accepted));
  }
  return {};
}

Result<void> Runner::recover(const Control& control) {
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
  if (gate.need_instances > state_.workspace.instances.capacity) {
    grow_instances(std::min(grown(gate.need_instances), instance_limit()));
  }
  const Pending& refused = pending_.front();
  if (has_frame(refused.transaction) && gate.need_instances > state_.workspace.instances.capacity) {
    view_instances_[refused.view] = std::max(view_instances_[refused.view], gate.need_instances);
    view_rows_[refused.view] = std::max<uint64_t>(control.counts.rows, 1);
    if (refused.n_bands > 1) {
      view_bands_[refused.view] = std::min(2 * refused.n_bands, kMaxBands);
    }
  }
  if (gate.need_rows > state_.model.row_capacity) MILLRACE_TRY(ensure_row_room(gate.need_rows));
  accepted_rows_ = control.counts.rows;
  // Cuts of later steps met a closed gate and are still due.
  const uint32_t step = step_of(gate.first_rejected);
  const bool refused_step = kind_of(gate.first_rejected) >= TransactionKind::Step;
  for (size_t i = 0; i < forced_used_.size(); ++i) {
    const uint32_t forced = options_.test_capacity[i].step;
    if (forced > step || (forced == step && !refused_step)) forced_used_[i] = false;
  }
  random_drawn_ = gate.first_rejected;
  // Everything recorded since was refused too. The queue is in order, so the reopening comes after
  // all of it.
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
  if (has_frame(pending.transaction)) note_instances(pending, control.counts);
  if (kind == TransactionKind::Step) return accept_step(control.metrics, accepted);
  if (sink_ == nullptr) return {};
  const uint32_t steps = step_of(pending.transaction);
  if (kind == TransactionKind::Snapshot) sink_->snapshot(steps, pending.snapshot);
  if (kind == TransactionKind::Eval) {
    sink_->rendered({steps, index_of(pending.transaction), control.counts.rows,
                     sizes_[pending.view], pending.image});
  }
  return {};
}

void Runner::note_instances(const Pending& pending, const Counts& counts) {
  view_instances_[pending.view] = std::max(view_instances_[pending.view], counts.instances);
  view_rows_[pending.view] = std::max<uint64_t>(counts.rows, 1);
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
