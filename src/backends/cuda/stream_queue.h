// StreamQueue: recorded commands on their way through the driver's stream, in batches.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/batch.h"
#include "backends/cuda/command_ring.h"
#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/cuda_options.h"
#include "backends/cuda/issue.h"
#include "backends/cuda/timeline.h"
#include "device/completion.h"
#include "device/fault.h"
#include "device/launch_log.h"

namespace millrace::cuda {

/// Commands in order. The n-th has point n; points pass batch by batch, since only the end of a
/// batch is an event. Recording never waits: a command goes to the driver at once while the driver
/// has room, and else is kept here until the completion thread has seen a batch pass.
///
/// One thread at a time records. Everything is guarded by a mutex of its own, which nobody holds
/// while waiting.
class StreamQueue {
 public:
  /// The pointers must outlive the queue. `idle` is called on the completion thread each time
  /// nothing is in the driver any more; it may wait.
  StreamQueue(const CudaContext* context, const KernelLibrary* kernels, const CudaOptions& options,
              std::vector<PinnedStaging*> staging);
  /// All commands must have passed or been dropped.
  ~StreamQueue() = default;
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  /// Records `command` as next_point(); after a fault it has no effect. False: the driver refused
  /// this very command, which is the fault.
  bool record(const Command& command);
  Point next_point() const { return last_recorded() + 1; }
  Point last_recorded() const { return recorded_.load(std::memory_order_acquire); }
  /// Closes the open batch, so that all that is recorded comes to pass without further calls.
  Point close_batch();
  Completion& completion() { return completion_; }
  Fault& fault() { return fault_; }

  /// Drops what is not in the driver yet; what is there passes without filling tickets.
  void abandon();
  /// The launches not known to have passed, for a message.
  std::string unfinished(size_t most) const;
  /// busy_ns and dry_ns up to the last batch that passed.
  void add_times(QueueStats* stats) const;
  /// From now on each command is timed and goes into `trace`; null ends that.
  void set_trace(TraceRecorder* trace) { trace_.store(trace, std::memory_order_release); }

 private:
  // Under the lock.
  bool has_room(const Command& command) const;
  bool issue_command(const Command& command, Point point);  // false: refused
  bool open_batch(Point before);
  void end_batch();
  /// Commands that the open batch may have.
  uint32_t batch_limit() const;
  /// Ends the open batch, or drops it where the driver takes no event any more.
  Status try_end_batch();
  void issue_kept();
  /// Stops the device for `status`, which the driver gave for `command`, or, where that is null,
  /// for some of the work it has.
  void stop(Status status, const Command* command);
  std::string fault_text(Status status, const Command* command) const;
  void drop_kept();
  void put_aside(std::unique_ptr<Batch> batch);

  // On the completion thread.
  Point pass_batch_blocking(Point before);
  Batch* oldest_batch();
  Point retire_oldest(Status status);

  const CudaContext* context_;
  const KernelLibrary* kernels_;
  const uint32_t depth_;
  const uint32_t commands_per_batch_;
  const std::vector<PinnedStaging*> staging_;
  std::atomic<Point> recorded_ = 0;
  std::atomic<TraceRecorder*> trace_ = nullptr;
  std::atomic<bool> abandoned_ = false;
  Fault fault_;

  mutable std::mutex mutex_;  // guards what follows
  EventPool events_;
  Timeline timeline_;
  LaunchLog launches_;
  std::unique_ptr<Batch> open_;
  std::vector<std::unique_ptr<Batch>> in_flight_;  // oldest first; the oldest belongs to the
                                                   // completion thread while it waits for it
  std::vector<std::unique_ptr<Batch>> spare_;
  CommandRing kept_;  // recorded last, not in the driver; then no batch is open
  uint32_t calls_in_flight_ = 0;
  Point retired_ = 0;  // of the newest batch that passed; Completion learns of it a little later

  Completion completion_;
  CompletionThread thread_;  // last: it runs pass_batch_blocking()
};

}  // namespace millrace::cuda
