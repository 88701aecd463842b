// Timeline: when the device ran what, from the timestamps of finished batches.
#pragma once

#include <chrono>
#include <vector>

#include "backends/vulkan/batch.h"

namespace millrace::vulkan {

/// Sums of busy and dry times, and spans for the trace. Called in batch order; guarded by its user.
class Timeline {
 public:
  explicit Timeline(const VulkanContext* context) : context_(context) {}

  /// Takes in a batch that has passed; its spans go into `trace` unless that is null.
  void add(const Batch& batch, TraceRecorder* trace);
  uint64_t busy_ns() const { return busy_ns_; }
  /// Time between batches with nothing to run. Inside a batch it is not seen.
  uint64_t dry_ns() const { return dry_ns_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Nanoseconds since the first timestamp ever seen, without the wrap of short counters.
  int64_t ns_of(uint64_t ticks);
  /// What the host's clock showed then.
  Clock::time_point host_time(int64_t ns) const;

  const VulkanContext* context_;
  std::vector<int64_t> times_;
  bool any_ = false;
  uint64_t last_ticks_ = 0;
  double total_ns_ = 0;
  int64_t last_end_ns_ = 0;
  // A batch is known to have passed a little after it has: the earliest knowledge is the truest.
  std::chrono::nanoseconds host_ahead_{};
  uint64_t busy_ns_ = 0;
  uint64_t dry_ns_ = 0;
};

}  // namespace millrace::vulkan
