// SubmitQueue: recorded commands on their way through the device's queue, in batches.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/vulkan/batch.h"
#include "backends/vulkan/timeline.h"
#include "base/worker_pool.h"
#include "device/completion.h"
#include "device/fault.h"
#include "device/launch_log.h"

namespace millrace::vulkan {

/// Commands in order. The n-th has point n; points pass batch by batch. One thread at a time
/// records, which only puts a command into a list. The submission thread makes command buffers of
/// it and hands them to the driver, and makes a pipeline where one is missing; the completion
/// thread waits for batches and fills tickets. Two mutexes, which nobody holds while waiting.
class SubmitQueue {
 public:
  /// The pointers must outlive the queue.
  SubmitQueue(VulkanContext* context, VulkanPipelines* pipelines);
  /// All commands must have passed or been dropped.
  ~SubmitQueue() = default;
  SubmitQueue(const SubmitQueue&) = delete;
  SubmitQueue& operator=(const SubmitQueue&) = delete;

  /// Records `command` as next_point(). Nothing is recorded once a fault has happened.
  void record(const Command& command);
  Point next_point() const { return last_recorded() + 1; }
  Point last_recorded() const { return recorded_.load(std::memory_order_acquire); }
  /// Closes the open batch, so that all that is recorded comes to pass without further calls.
  Point close_batch();
  Completion& completion() { return completion_; }
  Fault& fault() { return fault_; }

  /// Drops what is not with the driver yet; what is there passes without filling tickets.
  void abandon();
  /// The launches not known to have passed, for a message.
  std::string unfinished(size_t most) const;
  /// busy_ns and dry_ns up to the last batch that passed.
  void add_times(QueueStats* stats) const;
  /// From now on each command is timed and goes into `trace`; null ends that.
  void set_trace(TraceRecorder* trace) { trace_.store(trace, std::memory_order_release); }

 private:
  // On any thread.
  void close_locked();
  uint32_t batch_limit() const;
  void allow(Point point);
  void stop(Error error);

  // On the submission thread.
  void submit_closed();
  bool take_commands();
  void submit_commands();
  /// Makes a command buffer of the first commands; returns of how many, fewer than all where one
  /// failed, which stops the device.
  Result<size_t> fill_batch(Batch* batch);
  Result<void> hand_over(Batch* batch);
  void drop_commands(size_t from);

  // On the completion thread.
  Point pass_batch_blocking(Point before);
  Batch* oldest_batch() const;
  Point retire_oldest(const Result<void>& waited);

  VulkanContext* context_;
  VulkanPipelines* pipelines_;
  const uint32_t commands_per_batch_;
  std::atomic<Point> recorded_ = 0;
  std::atomic<TraceRecorder*> trace_ = nullptr;
  std::atomic<bool> abandoned_ = false;
  Fault fault_;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<Command> waiting_;
  size_t n_taken_ = 0;  // of waiting_, by the submission thread
  size_t n_closed_ = 0;
  LaunchLog launches_;

  std::vector<Command> commands_;  // the submission thread's own
  Point commands_end_ = 0;         // point of the last of them

  mutable std::mutex batches_mutex_;  // guards what follows
  BatchPool batches_;
  std::vector<Batch*> in_flight_;  // oldest first
  Timeline timeline_;
  std::atomic<size_t> n_in_flight_ = 0;

  std::mutex gate_mutex_;
  Point allowed_ = 0;

  Completion completion_;
  CompletionThread completion_thread_;  // runs pass_batch_blocking()
  WorkerLoop submission_thread_;        // last: it runs submit_closed()
};

}  // namespace millrace::vulkan
