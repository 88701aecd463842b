// A Runner with everything that it needs, with chosen room, on a device that keeps a record of
// submits and waits.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/runner.h"
#include "train/state_hash.h"
#include "train/tiny_capture.h"

namespace millrace::test {

/// What the host did, in order.
struct QueueEvent {
  enum Kind { kSubmit, kWait } kind;
  Point point;
  WaitReason reason = WaitReason::Test;  // of a wait
  uint64_t launches = 0;                 // of a submit: since the submit before
};

/// Passes every call on and remembers submits and waits.
class RecordingDevice : public Device {
 public:
  explicit RecordingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}
  const DeviceInfo& info() const override { return inner_->info(); }
  Result<BufferId> allocate(uint64_t bytes, const char* label) override {
    return inner_->allocate(bytes, label);
  }
  void release(BufferId buffer) override { inner_->release(buffer); }
  Result<void> upload(Slice to, std::span<const std::byte> bytes) override {
    return inner_->upload(to, bytes);
  }
  Result<Ticket> download(Slice from) override { return inner_->download(from); }
  Result<void> launch(const Launch& launch) override {
    ++n_launches_;
    if (!refuse_every_frame || launch.kernel != KernelId::gate_decide) {
      return inner_->launch(launch);
    }
    const DecideParams params = {};  // no room for anything
    Launch refused = launch;
    refused.params = std::as_bytes(std::span(&params, 1));
    return inner_->launch(refused);
  }
  Result<void> copy(Slice to, Slice from) override { return inner_->copy(to, from); }
  Result<void> fill(Slice to, uint32_t pattern) override { return inner_->fill(to, pattern); }
  Point submit() override {
    const Point point = inner_->submit();
    events.push_back({QueueEvent::kSubmit, point, WaitReason::Test, n_launches_});
    n_launches_ = 0;
    if (after_submit) after_submit();
    return point;
  }
  Point poll() override { return inner_->poll(); }
  Result<void> wait_blocking(Point point, const WaitSite& site) override {
    events.push_back({QueueEvent::kWait, point, site.reason});
    return inner_->wait_blocking(point, site);
  }
  WaitLedger& ledger() override { return inner_->ledger(); }
  MemoryStats memory() const override { return inner_->memory(); }
  void limit_memory(uint64_t bytes) override { inner_->limit_memory(bytes); }
  QueueStats queue() const override { return inner_->queue(); }
  void set_trace(TraceRecorder* trace) override { inner_->set_trace(trace); }

  std::vector<QueueEvent> events;
  bool refuse_every_frame = false;
  std::function<void()> after_submit;

 private:
  std::unique_ptr<Device> inner_;
  uint64_t n_launches_ = 0;
};

/// Room at the start, in rows and tile instances; 0 = plenty.
struct Room {
  uint64_t rows = 0, instances = 0;
};

/// A training run without files: load, run, hash.
class RunnerBench {
 public:
  explicit RunnerBench(const TrainOptions& options, Room room = {});

  /// From now on every transaction is followed by the end of all decoding that was asked for: tiny
  /// steps do not outrun the decoders, and what is left of waits for them is the trainer's fault.
  void keep_decoders_ahead();
  /// From now on the run shows what is planned to `sink`, from the held-out views.
  void plan_outputs(const OutputPlan& plan, RunSink* sink);
  /// Runs to `end_step` and settles; the first error, if any.
  Result<void> run_blocking(uint32_t end_step);
  /// The hash of the settled state.
  std::string hash_blocking();
  uint64_t rows_blocking();

  TrainOptions options;
  RecordingDevice device;
  SceneScale scale;
  EditLog edits;  // of steps to come
  TrainState state;
  std::unique_ptr<Photographs> photographs;
  std::unique_ptr<Runner> runner;
  std::atomic<bool> stop = false;
  std::vector<StepMetrics> accepted;  // of every accepted step, in the order of the calls
  uint64_t initial_rows = 0;
  std::vector<FrameSize> eval_sizes;  // of the held-out views
};

}  // namespace millrace::test
