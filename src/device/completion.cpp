// Completion: passed points, waiters and actions.
#include "device/completion.h"

#include <algorithm>

namespace millrace {

void Completion::advance(Point point) {
  // The store and the load are both sequentially consistent, as are a waiter's in the opposite
  // order: at least one of the two threads sees the other.
  passed_.store(point);
  if (point < interest_.load()) return;
  std::unique_lock lock(mutex_);
  run_due(lock, point);
  Point next = due_.empty() ? UINT64_MAX : due_.front().point;
  bool wakes = false;
  for (const Point waiting : waiting_) {
    wakes = wakes || waiting <= point;
    if (waiting > point) next = std::min(next, waiting);
  }
  interest_.store(next);
  lock.unlock();
  if (wakes) changed_.notify_all();
}

void Completion::run_due(std::unique_lock<std::mutex>& lock, Point point) {
  while (!due_.empty() && due_.front().point <= point) {
    const Due due = due_.front();
    due_.erase(due_.begin());
    lock.unlock();
    due.action(due.context, due.argument);
    lock.lock();
  }
}

void Completion::after(Point point, Action action, void* context, uint64_t argument) {
  {
    std::lock_guard lock(mutex_);
    interest_.store(std::min(interest_.load(), point));
    if (passed_.load() < point) {
      const auto at =
          std::upper_bound(due_.begin(), due_.end(), point,
                           [](Point value, const Due& due) { return value < due.point; });
      due_.insert(at, {point, action, context, argument});
      return;
    }
  }
  action(context, argument);
}

bool Completion::wait_blocking(Point point, WaitLedger& ledger, const WaitSite& site,
                               std::optional<std::chrono::milliseconds> limit) {
  if (passed() >= point) return true;
  const WaitSite counted = ledger.recorded_as(site, point);
  std::unique_lock lock(mutex_);
  waiting_.push_back(point);
  interest_.store(std::min(interest_.load(), point));
  // The demand belongs to the first look, so that work it lets go still counts as waited for.
  bool demanded = demand_ == nullptr;
  const auto done = [this, point, &demanded] {
    if (passed_.load() >= point) return true;
    if (!demanded) demand_(point);
    demanded = true;
    return false;
  };
  bool ok = true;
  if (limit) {
    ok = ledger.wait_for_blocking(lock, changed_, done, *limit, counted);
  } else {
    ledger.wait_blocking(lock, changed_, done, counted);
  }
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), point));
  return ok;
}

CompletionThread::CompletionThread(Completion* completion, std::function<Point(Point)> wait_past)
    : completion_(completion), wait_past_(std::move(wait_past)), loop_([this] { follow(); }) {}

void CompletionThread::follow() {
  for (;;) {
    const Point before = completion_->passed();
    const Point now = wait_past_(before);
    if (now == before) return;
    completion_->advance(now);
  }
}

}  // namespace millrace
