// Accounting of steady steps.
#include "train/run_meter.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr uint64_t kMostReserved = 1 << 20;

double per_step(uint64_t count, uint64_t steps) {
  return steps ? static_cast<double>(count) / static_cast<double>(steps) : 0;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RunMeter::RunMeter(Device& device, const Photographs* photographs, uint64_t n_steps)
    : device_(device), photographs_(photographs) {
  intervals_ms_.reserve(std::min(n_steps, kMostReserved));
}

void RunMeter::read_now(Totals* totals) const {
  Totals& t = *totals;
  t.seconds = seconds_now();
  t.dry_seconds = static_cast<double>(device_.queue().dry_ns) * 1e-9;
  if (photographs_) {
    t.n_reloads = photographs_->loads();
    t.reload_seconds = photographs_->load_seconds();
  }
  device_.ledger().read_totals(&t.sites);
}

void RunMeter::add_until(const Totals& t) {
  if (running_ && steady_) {
    total_.seconds += t.seconds - base_.seconds;
    total_.dry_seconds += t.dry_seconds - base_.dry_seconds;
    total_.reload_seconds += t.reload_seconds - base_.reload_seconds;
    total_.n_reloads += t.n_reloads - base_.n_reloads;
    total_.sites.resize(t.sites.size());
    base_.sites.resize(t.sites.size());
    for (size_t i = 0; i < t.sites.size(); ++i) {
      total_.sites[i].count += t.sites[i].count - base_.sites[i].count;
      total_.sites[i].blocked_ns += t.sites[i].blocked_ns - base_.sites[i].blocked_ns;
    }
  }
  base_ = t;
}

void RunMeter::resume() {
  read_now(&base_);
  running_ = true;
  has_last_ = false;
}

void RunMeter::pause() {
  Totals now;
  read_now(&now);
  add_until(now);
  running_ = false;
}

void RunMeter::step(uint32_t step) {
  const auto t = std::chrono::steady_clock::now();
  if (has_last_ && steady_) {
    intervals_ms_.push_back(std::chrono::duration<float, std::milli>(t - last_step_).count());
  }
  last_step_ = t;
  has_last_ = true;
  if (steady_ && !replayed_) ++steady_steps_;
  replayed_ = false;
  read_now(&last_);
  if (!steady_ && step + 1 >= kFirstSteadyStep) {
    add_until(last_);
    steady_ = true;
  }
}

void RunMeter::leave_out() {
  if (has_last_) add_until(last_);
  read_now(&base_);
  has_last_ = false;
}

void RunMeter::replayed() {
  leave_out();
  replayed_ = true;
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
  const SlowFigures f = figures();
  return per_step(f.n_waits + f.n_decode_waits, steady_steps_);
}

double RunMeter::pacing_per_step() const {
  return per_step(figures().n_pacing_waits, steady_steps_);
}

double RunMeter::device_dry_fraction() const {
  return total_.seconds > 0 ? total_.dry_seconds / total_.seconds : 0;
}

RunMeter::StepMs RunMeter::step_ms() const {
  if (intervals_ms_.empty()) return {};
  const size_t n_last = std::min(intervals_ms_.size(), kLastSteps);
  std::vector<float> last(intervals_ms_.end() - static_cast<ptrdiff_t>(n_last),
                          intervals_ms_.end());
  std::vector<float> sorted = intervals_ms_;
  std::sort(last.begin(), last.end());
  std::sort(sorted.begin(), sorted.end());
  return {sorted[sorted.size() / 2], sorted[std::min(sorted.size() - 1, sorted.size() * 95 / 100)],
          last[n_last / 2]};
}

SlowFigures RunMeter::figures() const {
  SlowFigures f;
  f.n_steps = steady_steps_;
  f.seconds = total_.seconds;
  f.dry_seconds = total_.dry_seconds;
  f.n_threads = device_.info().threads;
  const std::vector<WaitRecord> rows = device_.ledger().records();
  uint64_t top_ns = 0;
  for (size_t i = 0; i < total_.sites.size(); ++i) {
    const auto [count, ns] = total_.sites[i];
    const double seconds = static_cast<double>(ns) * 1e-9;
    if (rows[i].reason == WaitReason::Pacing) {
      f.n_pacing_waits += count;
    } else if (rows[i].reason == WaitReason::Decode) {
      f.n_decode_waits += count;
      f.decode_seconds += seconds;
    } else {
      f.n_waits += count;
      f.wait_seconds += seconds;
      if (ns <= top_ns) continue;
      top_ns = ns;
      f.top_site = rows[i].site;
      f.top_reason = to_string(rows[i].reason);
      f.top_count = count;
    }
  }
  if (photographs_) {
    f.n_reloads = total_.n_reloads;
    f.reload_seconds = total_.reload_seconds;
    f.all_resident = photographs_->all_resident();
    f.photograph_bytes = photographs_->total_bytes();
  }
  return f;
}

}  // namespace millrace
