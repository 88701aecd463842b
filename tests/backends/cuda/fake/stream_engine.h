// StreamEngine: the fake driver's stream, a thread that runs commands as far as the test lets it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "backends/cuda/fake/fake_cuda.h"

namespace millrace::cuda::fake {

using BlockMap = std::map<uint64_t, uint64_t>;  // address: bytes

struct FakeEvent {
  uint64_t recorded = 0;  // records queued
  uint64_t passed = 0;
  std::chrono::steady_clock::time_point at;
};

/// All state of the fake. `mutex` guards it; commands run without it.
class StreamEngine {
 public:
  /// What a command does; the status ends the context unless it is Ok.
  using Body = std::function<Status()>;

  StreamEngine();
  ~StreamEngine();

  /// Queues a command, stopping the caller while the queue is full as a real driver does.
  Status push(Body body);
  Status record(FakeEvent* event);
  Status synchronize(FakeEvent* event);
  Status allocate(uint64_t bytes, BlockMap* blocks, uint64_t* address);
  Status free(BlockMap* blocks, uint64_t address);
  bool lies_in(const BlockMap& blocks, uint64_t address, uint64_t bytes);
  uint64_t bytes_behind(uint64_t address);
  void count_stop_if_busy() {
    const std::lock_guard lock(mutex);
    if (counts.queued > 0) count_stopping_call();
  }
  void count_stopping_call() { ++stopping_calls[std::this_thread::get_id()]; }

  struct Rule {
    uint64_t skip = 0, times = 0;
    Status status = Status::Ok;
    /// True when the rule applies to this call.
    bool applies() {
      if (times == 0) return false;
      if (skip > 0) {
        --skip;
        return false;
      }
      --times;
      return true;
    }
  };

  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;
  uint64_t allowance = 0;  // commands that may run while held
  Status sticky = Status::Ok;
  int n_devices = 1;
  bool has_pools = true;
  Runner runner = nullptr;
  Rule allocation_rule, launch_rule, kernel_rule;
  Counts counts;
  BlockMap device_blocks, pinned_blocks;
  std::map<std::thread::id, uint64_t> stopping_calls;

 private:
  struct Item {
    Body body;
    FakeEvent* event = nullptr;
  };
  void run();
  bool may_run() const;

  std::deque<Item> items_;
  bool stopping_ = false;
  std::thread thread_;  // last
};

}  // namespace millrace::cuda::fake
