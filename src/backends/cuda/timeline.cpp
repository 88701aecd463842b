// Times of batches.
#include "backends/cuda/timeline.h"

#include <algorithm>

namespace millrace::cuda {
namespace {

// Two events one after the other are this far apart on a device that never ran dry.
constexpr int64_t kEventNs = 5'000;

}  // namespace

int64_t Timeline::between(Event begin, Event end) const {
  float ms = 0;
  if (context_->driver.event_elapsed_time(&ms, begin, end) != Status::Ok) return 0;
  return std::max<int64_t>(0, static_cast<int64_t>(static_cast<double>(ms) * 1e6));
}

Timeline::Clock::time_point Timeline::begin_of(int64_t gap_ns, int64_t batch_ns) const {
  const Clock::time_point latest = Clock::now() - std::chrono::nanoseconds(batch_ns);
  if (last_end_ == nullptr) return latest;
  // The estimate drifts by the events' resolution; what has passed cannot lie in the future.
  return std::min(latest, last_end_at_ + std::chrono::nanoseconds(gap_ns));
}

void Timeline::add(Batch* batch, TraceRecorder* trace) {
  const int64_t batch_ns = between(batch->begin, batch->end);
  const int64_t gap_ns = last_end_ == nullptr ? 0 : between(last_end_, batch->begin);
  busy_ns_ += static_cast<uint64_t>(batch_ns);
  (gap_ns > kEventNs ? dry_ns_ : busy_ns_) += static_cast<uint64_t>(gap_ns);
  const Clock::time_point begin_at = begin_of(gap_ns, batch_ns);
  for (const TimedCommand& timed : batch->timed) {
    if (trace != nullptr) {
      const auto from = begin_at + std::chrono::nanoseconds(between(batch->begin, timed.begin));
      const auto to = from + std::chrono::nanoseconds(between(timed.begin, timed.end));
      trace->span(TraceTrack::Device, timed.name, from, to, timed.details);
    }
    events_->give_back(timed.begin);
    events_->give_back(timed.end);
  }
  batch->timed.clear();
  events_->give_back(batch->begin);
  events_->give_back(last_end_);
  last_end_ = batch->end;
  last_end_at_ = begin_at + std::chrono::nanoseconds(batch_ns);
  batch->begin = batch->end = nullptr;
}

}  // namespace millrace::cuda
