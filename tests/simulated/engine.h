// Engine: the device side of the simulated device. Holds the queued commands, runs them when its
// clock says so, and injects and reports faults.
#pragma once

#include <tbb/task_arena.h>

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/completion.h"
#include "simulated/guarded_kernel.h"
#include "simulated/simulated_device.h"

namespace millrace::simulated {

/// Bytes of device memory that a command uses.
struct Range {
  std::byte* first = nullptr;
  uint64_t bytes = 0;
  Access access = Access::Read;
};

struct Command {
  enum class Kind : uint8_t { Kernel, Copy, Fill, Snapshot };
  Kind kind = Kind::Kernel;
  const char* name = "";           // "kernel add_u32", "upload", "copy", ...
  std::vector<Range> ranges = {};  // Copy: to, from. Fill: to. Snapshot: from. Kernel: its bindings
  KernelId kernel = {};
  uint64_t threads = 0;
  const uint32_t* count = nullptr;
  std::vector<std::byte> params = {};
  uint32_t pattern = 0;
  TicketState* ticket = nullptr;  // one reference
  SourceLocation site = {};
};

/// Not thread-safe but for its mutex, which its device and its control hold around each call.
class Engine {
 public:
  explicit Engine(const Options& given);

  std::mutex mutex;
  Options options;
  bool forget_hazards = false;
  ClosingReport closing;
  std::vector<std::string> problems;

  // Recording.
  /// The n-th command has point n.
  Point queued() const { return queued_; }
  Point passed() const { return completion_.passed(); }
  void add(Command command);
  /// Ends a batch; returns its point.
  Point close_batch();
  /// Lets the clock go on at the end of a device call; poll() alone is no sign of progress.
  void tick(bool is_poll = false);
  /// Calls so far but poll(); needs no mutex.
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

  // Running.
  uint64_t run(uint64_t n);
  uint64_t run_to(Point point) { return point > passed() ? run(point - passed()) : 0; }
  uint64_t commands_run() const { return n_run_; }
  std::vector<std::string> pending() const;
  /// Drops the commands that have not run.
  void drop_all();
  void replace_kernel(KernelId kernel, kernels::CpuKernel body);

  // Checks and faults.
  /// The host is about to read or write `range`: a problem if a queued command is in its way.
  void check_host(const char* what, const Range& range);
  void refuse_memory(uint64_t skip, uint64_t times);
  /// A request begins: it may ask the system more than once.
  void begin_request() { request_counted_ = false; }
  /// Whether the system refuses memory now.
  bool refuses();
  void fail_kernel(uint64_t skip) { failing_kernel_ = n_kernels_ + skip + 1; }
  void lose_device(uint64_t skip) { losing_command_ = n_run_ + skip + 1; }
  /// The fault, the first time it is asked for after it happened.
  std::optional<Error> take_fault();
  /// Why nothing may be queued any more, if so.
  std::optional<Error> stopped() const;
  bool lost() const { return lost_; }

 private:
  void run_one();
  void execute(Command& command);
  void run_kernel(const Command& command);
  void stop(ErrorCode code, std::string message);
  void find_problem(const std::string& message);

  std::deque<Command> commands_;
  Point queued_ = 0;
  Completion completion_;
  std::deque<Point> batches_;  // that the lagging clock has not run
  Point last_batch_ = 0;
  uint64_t ticks_ = 0;
  std::atomic<uint64_t> calls_ = 0;
  uint64_t n_run_ = 0, n_kernels_ = 0;

  std::array<kernels::CpuKernel, static_cast<size_t>(KernelId::kCount)> kernels_;
  GuardedKernel guarded_;
  tbb::task_arena arena_{1, 1};

  uint64_t failing_kernel_ = 0, losing_command_ = 0;  // 0: none
  uint64_t requests_ = 0, first_refused_ = 1, end_refused_ = 1;
  bool request_counted_ = false;
  std::optional<Error> fault_;
  uint64_t suppressed_ = 0;
  bool reported_ = false, lost_ = false;
};

/// "kernel add_u32 queued at file.cpp:12", "upload".
std::string describe(const Command& command);

}  // namespace millrace::simulated
