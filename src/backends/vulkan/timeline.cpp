// Times of batches.
#include "backends/vulkan/timeline.h"

#include <algorithm>

namespace millrace::vulkan {
namespace {

// Two batches one after the other are this far apart on a device that never ran dry.
constexpr int64_t kBetweenNs = 5'000;

}  // namespace

int64_t Timeline::ns_of(uint64_t ticks) {
  const uint32_t bits = context_->candidate().timestamp_bits;
  const uint64_t mask = bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  const uint64_t step = any_ ? (ticks - last_ticks_) & mask : 0;
  any_ = true;
  // A step back by a hair, as some drivers give, would be a huge one forward.
  if (step > mask / 2) return static_cast<int64_t>(total_ns_);
  last_ticks_ = ticks;
  total_ns_ += static_cast<double>(step) * context_->ns_per_tick();
  return static_cast<int64_t>(total_ns_);
}

Timeline::Clock::time_point Timeline::host_time(int64_t ns) const {
  return Clock::time_point(std::chrono::nanoseconds(ns) + host_ahead_);
}

void Timeline::add(const Batch& batch, TraceRecorder* trace) {
  if (batch.n_timestamps < 2) return;
  const auto* const ticks = reinterpret_cast<const uint64_t*>(block_of(batch.ticks).mapped());
  const bool first = !any_;
  const int64_t begin_ns = ns_of(ticks[0]);
  times_.clear();
  for (uint32_t i = 0; i < batch.n_timestamps; ++i) times_.push_back(ns_of(ticks[i]));
  const int64_t end_ns = times_.back();
  const auto ahead =
      std::chrono::nanoseconds(Clock::now().time_since_epoch()) - std::chrono::nanoseconds(end_ns);
  host_ahead_ = first ? ahead : std::min(host_ahead_, ahead);
  const int64_t gap_ns = first ? 0 : begin_ns - last_end_ns_;
  busy_ns_ += static_cast<uint64_t>(end_ns - begin_ns);
  (gap_ns > kBetweenNs ? dry_ns_ : busy_ns_) += static_cast<uint64_t>(gap_ns);
  last_end_ns_ = end_ns;
  if (trace == nullptr) return;
  for (size_t i = 0; i < batch.traced.size(); ++i) {
    trace->span(TraceTrack::Device, batch.traced[i].name, host_time(times_[i]),
                host_time(times_[i + 1]), batch.traced[i].details);
  }
}

}  // namespace millrace::vulkan
