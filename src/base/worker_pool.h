// WorkerPool: background threads that run posted jobs. Workers may wait; the host never waits here.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
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
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace millrace
