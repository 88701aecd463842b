// Fault: why a device has stopped, said in full once.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "base/result.h"

namespace millrace {

/// The first fault of a device. Thread-safe.
class Fault {
 public:
  /// Keeps `error` if it is the first.
  void set(Error error) {
    std::lock_guard lock(mutex_);
    if (happened_) return;
    error_ = std::move(error);
    happened_.store(true, std::memory_order_release);
  }
  bool happened() const { return happened_.load(std::memory_order_acquire); }
  /// The fault in full the first time it is asked for, later that the device has stopped.
  std::optional<Error> report() {
    if (!happened()) return {};
    std::lock_guard lock(mutex_);
    if (!std::exchange(reported_, true)) return error_;
    return Error{error_.code, "the device has stopped for good: " + error_.message};
  }
  /// The fault if nobody has asked for it.
  std::optional<Error> unreported() const {
    std::lock_guard lock(mutex_);
    if (!happened_ || reported_) return {};
    return error_;
  }

 private:
  std::atomic<bool> happened_ = false;
  mutable std::mutex mutex_;  // guards what follows
  Error error_;
  bool reported_ = false;
};

}  // namespace millrace
