// Accounting of the windows of a run.
#include "train/step_windows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

using nlohmann::ordered_json;

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

StepWindows::StepWindows(Device& device, uint32_t n_steps)
    : device_(device),
      n_steps_(std::max(n_steps, 1u)),
      n_windows_(std::min(n_steps_, kMaxWindows)) {}

StepWindows::Totals StepWindows::now() const {
  return {std::chrono::steady_clock::now(), device_.queue().busy_ns,
          device_.ledger().count_except_pacing()};
}

void StepWindows::add_until(const Totals& t) {
  Sums& sums = sums_[current_];
  sums.seconds += std::chrono::duration<double>(t.time - base_.time).count();
  sums.busy_seconds += static_cast<double>(t.busy_ns - base_.busy_ns) * 1e-9;
  sums.waits += t.waits - base_.waits;
  base_ = t;
}

void StepWindows::resume() {
  base_ = now();
  running_ = true;
  has_last_ = false;
}

void StepWindows::pause() {
  add_until(now());
  running_ = false;
}

void StepWindows::leave_out() {
  if (has_last_) add_until(last_);
  base_ = now();
  has_last_ = false;
}

uint32_t StepWindows::end_of(uint32_t window) const {
  return static_cast<uint32_t>(uint64_t{n_steps_} * (window + 1) / n_windows_);
}

void StepWindows::step(const StepMetrics& metrics) {
  Sums& sums = sums_[current_];
  ++sums.n_steps;
  if (running_) ++sums.n_timed;
  sums.gaussians += metrics.rows;
  sums.instances += static_cast<double>(metrics.instances);
  losses_[n_losses_++ % kLossWindow] = metrics.loss;
  last_ = now();
  has_last_ = running_;
  if (metrics.step + 1 < end_of(current_) || current_ + 1 == n_windows_) return;
  if (running_) add_until(last_);
  ++current_;
}

std::vector<StepWindow> StepWindows::windows() const {
  std::vector<StepWindow> windows;
  uint32_t begin = 0;
  for (uint32_t i = 0; i < n_windows_ && sums_[i].n_steps > 0; ++i) {
    const Sums& sums = sums_[i];
    StepWindow window;
    window.step_begin = begin;
    window.step_end = begin + sums.n_steps;
    window.ms_per_step = 1000 * ratio(sums.seconds, sums.n_timed);
    window.gaussians = sums.gaussians / sums.n_steps;
    window.instances = sums.instances / sums.n_steps;
    window.device_busy_fraction = ratio(sums.busy_seconds, sums.n_timed ? sums.seconds : 0);
    window.waits_per_step = ratio(static_cast<double>(sums.waits), sums.n_timed);
    windows.push_back(window);
    begin = window.step_end;
  }
  return windows;
}

double StepWindows::recent_loss() const {
  const size_t n = std::min<uint64_t>(n_losses_, kLossWindow);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += losses_[i];
  return ratio(sum, static_cast<double>(n));
}

ordered_json to_json(const std::vector<StepWindow>& windows) {
  const auto number = [](double value) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
  };
  ordered_json json = ordered_json::array();
  for (const StepWindow& window : windows) {
    json.push_back({{"step_begin", window.step_begin},
                    {"step_end", window.step_end},
                    {"ms_per_step", number(window.ms_per_step)},
                    {"gaussians", number(window.gaussians)},
                    {"instances", number(window.instances)},
                    {"device_busy_fraction", number(window.device_busy_fraction)},
                    {"waits_per_step", number(window.waits_per_step)}});
  }
  return json;
}

}  // namespace millrace
