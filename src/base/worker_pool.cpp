// WorkerPool and WorkerLoop: the loops of worker threads and their orderly end.
#include "base/worker_pool.h"

#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace millrace {

WorkerPool::WorkerPool(size_t n_threads) {
  threads_.reserve(n_threads);
  for (size_t i = 0; i < n_threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::post(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void WorkerPool::run() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.erase(jobs_.begin());
    }
    job();
  }
}

namespace {

// A sleeping thread costs its waker a system call of 1 to 5 us and itself as much again, so a loop
// that ran out of work looks for more this long before it sleeps.
constexpr std::chrono::microseconds kSpin{20};

}  // namespace

WorkerLoop::WorkerLoop(std::function<void()> body) : body_(std::move(body)) {
  thread_ = std::thread([this] { run(); });
}

WorkerLoop::~WorkerLoop() {
  stopping_ = true;
  { std::lock_guard lock(mutex_); }
  changed_.notify_all();
  thread_.join();
}

void WorkerLoop::wake() {
  if (woken_.exchange(true)) return;
  if (!asleep_) return;
  { std::lock_guard lock(mutex_); }
  changed_.notify_one();
}

void WorkerLoop::run() {
  while (!stopping_) {
    if (woken_.exchange(false)) {
      body_();
      continue;
    }
    const auto spin_end = std::chrono::steady_clock::now() + kSpin;
    while (!woken_ && !stopping_ && std::chrono::steady_clock::now() < spin_end) {
    }
    if (woken_ || stopping_) continue;
    std::unique_lock lock(mutex_);
    asleep_ = true;
    changed_.wait(lock, [this] { return woken_ || stopping_; });
    asleep_ = false;
  }
}

void pause_worker(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

int await_child_on_worker(int pid) {
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace millrace
