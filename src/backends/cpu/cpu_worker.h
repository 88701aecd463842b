// CpuWorker: the thread that executes the CPU device's commands, and the clock of its business.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "backends/cpu/command_queue.h"
#include "base/worker_pool.h"
#include "device/completion.h"

namespace millrace::cpu {

/// Executes commands in order; kernels use the threads of one arena. A kernel that throws stops the
/// device: later commands pass without effect, but tickets still become ready.
class CpuWorker {
 public:
  /// With `lazy`, commands run only as far as allow() says. The references must outlive the worker.
  CpuWorker(CommandQueue* queue, Completion* completion, int threads, bool lazy);

  /// Commands were published.
  void wake() { loop_.wake(); }
  /// A lazy worker may run all commands up to `point`.
  void allow(Point point);
  /// From now on each command that runs goes into `trace`; null ends that.
  void set_trace(TraceRecorder* trace) { trace_.store(trace, std::memory_order_release); }
  /// From now on commands pass without effect and without filling tickets.
  void abandon() { abandoned_ = true; }

  /// The fault that stopped the device, the first time it is asked for after it happened.
  std::optional<Error> take_fault();
  /// The fault that was reported before, if any: why nothing may be queued any more.
  std::optional<Error> reported_fault() const;
  /// busy_ns and dry_ns up to now.
  void add_times(QueueStats* stats) const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : uint8_t { New, Busy, Dry, Held };

  void drain();
  void run_commands();
  bool more() const;
  void execute(Command& command);
  void execute_traced(Command& command, TraceRecorder& trace);
  void run_kernel(const Command& command);
  void stop_device(const Command& command, ErrorCode code, const char* what);
  void enter(State state);

  CommandQueue* queue_;
  Completion* completion_;
  std::atomic<Point> allowed_;
  std::atomic<bool> abandoned_ = false;
  std::atomic<TraceRecorder*> trace_ = nullptr;
  Point finished_ = 0;  // the worker's own count

  std::atomic<bool> stopped_ = false;
  std::atomic<bool> reported_ = false;
  std::atomic<uint64_t> suppressed_ = 0;  // commands behind the fault
  mutable std::mutex mutex_;              // the fault and the times
  Error fault_;
  State state_ = State::New;
  Clock::time_point since_;
  uint64_t busy_ns_ = 0;
  uint64_t dry_ns_ = 0;

  // oneTBB starts no more threads than there are processors unless told to.
  std::optional<tbb::global_control> more_threads_;
  tbb::task_arena arena_;
  WorkerLoop loop_;  // last: it runs drain()
};

}  // namespace millrace::cpu
