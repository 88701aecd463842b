// WorkerPool and WorkerLoop: background threads. Workers may wait; the host never waits here.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace {

/// A fixed set of threads serving one first-in first-out job queue.
/// Jobs must not throw. The destructor drops jobs that have not begun and joins the threads.
class WorkerPool {
 public:
  explicit WorkerPool(size_t n_threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Queues `job`; returns at once. Safe from any thread.
  void post(std::function<void()> job);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> jobs_;  // oldest first; keeps its memory, unlike a deque
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// One thread that calls `body` after each wake(). Wakes that arrive while it runs are merged into
/// one more call. `body` must not throw. The destructor returns once a running `body` has.
class WorkerLoop {
 public:
  explicit WorkerLoop(std::function<void()> body);
  ~WorkerLoop();
  WorkerLoop(const WorkerLoop&) = delete;
  WorkerLoop& operator=(const WorkerLoop&) = delete;

  /// Has `body` called once more; returns at once and allocates nothing. Safe from any thread.
  void wake();

 private:
  void run();

  std::function<void()> body_;
  std::atomic<bool> woken_ = false;
  std::atomic<bool> asleep_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

/// Stops the calling worker thread for `ms` milliseconds; for artificial delays in tests. Never
/// call it on the host thread.
void pause_worker(double ms);

/// Stops the calling worker thread until the child process `pid` of this program has ended, and
/// returns its exit code, 128 + the signal that ended it, or -1 if there is no such child. Never
/// call it on the host thread.
int await_child_on_worker(int pid);

}  // namespace millrace
