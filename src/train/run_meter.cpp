// Accounting of steady steps.
#include "train/run_meter.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RunMeter::Totals RunMeter::now() const {
  Totals t;
  t.seconds = seconds_now();
  t.dry_seconds = static_cast<double>(device_.queue().dry_ns) * 1e-9;
  for (const WaitRecord& row : device_.ledger().records()) {
    if (row.reason == WaitReason::Pacing) {
      t.pacing += row.count;
      continue;
    }
    t.waits += row.count;
    t.wait_seconds += static_cast<double>(row.blocked_ns) * 1e-9;
    if (row.reason == WaitReason::Decode)
      t.decode_seconds += static_cast<double>(row.blocked_ns) * 1e-9;
  }
  return t;
}

void RunMeter::add_since_base() {
  const Totals t = now();
  if (running_ && steady_) {
    total_.seconds += t.seconds - base_.seconds;
    total_.dry_seconds += t.dry_seconds - base_.dry_seconds;
    total_.decode_seconds += t.decode_seconds - base_.decode_seconds;
    total_.wait_seconds += t.wait_seconds - base_.wait_seconds;
    total_.waits += t.waits - base_.waits;
    total_.pacing += t.pacing - base_.pacing;
  }
  base_ = t;
}

void RunMeter::resume() {
  base_ = now();
  running_ = true;
  has_last_ = false;
}

void RunMeter::pause() {
  add_since_base();
  running_ = false;
}

void RunMeter::step(uint32_t step) {
  const auto t = std::chrono::steady_clock::now();
  if (has_last_ && steady_) {
    intervals_ms_.push_back(std::chrono::duration<float, std::milli>(t - last_step_).count());
  }
  last_step_ = t;
  has_last_ = true;
  if (steady_) ++steady_steps_;
  if (!steady_ && step + 1 >= kFirstSteadyStep) {
    add_since_base();
    steady_ = true;
  }
}

void RunMeter::replayed() {
  // The refused attempts' time since the last accepted step is left out.
  base_ = now();
  has_last_ = false;
}

double RunMeter::steps_per_second() const {
  return total_.seconds > 0 ? static_cast<double>(steady_steps_) / total_.seconds : 0;
}

double RunMeter::recent_steps_per_second() const {
  double ms = 0;
  size_t n = 0;
  for (size_t i = intervals_ms_.size(); i > 0 && ms < 1000.0; --i, ++n) ms += intervals_ms_[i - 1];
  return ms > 0 ? 1000.0 * static_cast<double>(n) / ms : 0;
}

double RunMeter::steady_waits_per_step() const {
  return steady_steps_ ? static_cast<double>(total_.waits) / static_cast<double>(steady_steps_) : 0;
}

double RunMeter::pacing_per_step() const {
  return steady_steps_ ? static_cast<double>(total_.pacing) / static_cast<double>(steady_steps_)
                       : 0;
}

double RunMeter::device_dry_fraction() const {
  return total_.seconds > 0 ? total_.dry_seconds / total_.seconds : 0;
}

std::pair<double, double> RunMeter::step_ms() const {
  if (intervals_ms_.empty()) return {0, 0};
  std::vector<float> sorted = intervals_ms_;
  std::sort(sorted.begin(), sorted.end());
  return {sorted[sorted.size() / 2], sorted[std::min(sorted.size() - 1, sorted.size() * 95 / 100)]};
}

std::string RunMeter::why_slow(int n_threads) const {
  if (steady_steps_ == 0) return "too few steps to say";
  const double seconds = std::max(total_.seconds, 1e-9);
  const double decode = total_.decode_seconds / seconds, wait = total_.wait_seconds / seconds;
  if (decode > 0.05) {
    return fmt::format(
        "decode-bound: {:.0f} % of the time went into waiting for photographs to be decoded; "
        "train at a smaller size or raise --image-cache-bytes",
        100 * decode);
  }
  if (wait > 0.02)
    return fmt::format("host-wait: the host stopped for {:.0f} % of the time", 100 * wait);
  return fmt::format("device-bound: the device computed for {:.1f} % of the time on {} threads",
                     100 * (1 - device_dry_fraction()), n_threads);
}

}  // namespace millrace
