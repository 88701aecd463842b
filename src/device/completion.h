// Completion: what happens when the device passes a point. Wakes waiting threads and runs actions.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/worker_pool.h"
#include "device/device.h"

namespace millrace {

/// The newest passed point of a device and what waits for later ones. One thread, which learns of
/// passed points first, calls advance(); any thread may call the rest.
class Completion {
 public:
  /// Called with the context and the argument given to after(); must not wait.
  using Action = void (*)(void* context, uint64_t argument);

  /// `demand(point)` is called by each wait that finds its point not passed, before it blocks: a
  /// device that holds work back until someone waits lets it go there. It must not wait or call
  /// back.
  explicit Completion(std::function<void(Point)> demand = {}) : demand_(std::move(demand)) {}

  /// The device has passed `point`: runs the actions due, oldest first, and wakes the waiters.
  void advance(Point point);
  Point passed() const { return passed_.load(std::memory_order_acquire); }
  /// Runs `action` once `point` has passed, on the thread that calls advance(), or here and now if
  /// it has passed already.
  void after(Point point, Action action, void* context, uint64_t argument);
  /// Stops this thread until `point` has passed, or for `limit` at most; returns whether it passed.
  bool wait_blocking(Point point, WaitLedger& ledger, const WaitSite& site,
                     std::optional<std::chrono::milliseconds> limit = {});

 private:
  struct Due {
    Point point;
    Action action;
    void* context;
    uint64_t argument;
  };

  void run_due(std::unique_lock<std::mutex>& lock, Point point);

  std::function<void(Point)> demand_;
  std::atomic<Point> passed_ = 0;
  // The oldest point that anyone waits for: below it advance() takes no lock.
  std::atomic<Point> interest_ = UINT64_MAX;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Due> due_;        // by point
  std::vector<Point> waiting_;  // one per waiting thread
};

/// The completion thread of a device whose driver reports points by a blocking call.
class CompletionThread {
 public:
  /// `wait_past(p)` returns, on the completion thread, the newest passed point once it is above p;
  /// or p itself when told to stop or when nothing newer was submitted. `completion` must outlive
  /// this.
  CompletionThread(Completion* completion, std::function<Point(Point)> wait_past);

  /// Work was submitted: have the thread wait for it.
  void wake() { loop_.wake(); }

 private:
  void follow();

  Completion* completion_;
  std::function<Point(Point)> wait_past_;
  WorkerLoop loop_;  // last: it runs follow()
};

}  // namespace millrace
