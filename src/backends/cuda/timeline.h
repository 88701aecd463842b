// Timeline: when the device ran what, from the events of finished batches.
#pragma once

#include <chrono>
#include <cstdint>

#include "backends/cuda/batch.h"

namespace millrace::cuda {

/// Sums of busy and dry times, and spans for the trace. Called in batch order; guarded by its user.
class Timeline {
 public:
  Timeline(const CudaContext* context, EventPool* events) : context_(context), events_(events) {}

  /// Takes in a batch that has passed; its events go back to the pool.
  void add(Batch* batch, TraceRecorder* trace);
  uint64_t busy_ns() const { return busy_ns_; }
  /// Time between batches with nothing queued. Inside a batch it is not seen.
  uint64_t dry_ns() const { return dry_ns_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Nanoseconds of the device between two passed events, at least 0.
  int64_t between(Event begin, Event end) const;
  /// When the host's clock showed the batch's first event, by the last batch's end and the device's
  /// own clock.
  Clock::time_point begin_of(int64_t gap_ns, int64_t batch_ns) const;

  const CudaContext* context_;
  EventPool* events_;
  Event last_end_ = nullptr;  // kept to measure the next gap
  Clock::time_point last_end_at_;
  uint64_t busy_ns_ = 0;
  uint64_t dry_ns_ = 0;
};

}  // namespace millrace::cuda
