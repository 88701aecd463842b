// RunMeter: the time, waits and device idleness of the steps that count, and the "why slow" line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"

namespace millrace {

/// Steps from this one on are steady.
constexpr uint32_t kFirstSteadyStep = 20;

/// Counts only while running: evaluation and saving are put between pause() and resume().
class RunMeter {
 public:
  explicit RunMeter(Device& device) : device_(device) {
    // Room for the intervals of a long run, so that no steady step allocates.
    intervals_ms_.reserve(size_t{1} << 16);
  }

  void resume();
  void pause();
  /// Tells of an accepted step.
  void step(uint32_t step);
  /// Time and waits of replays do not count as steady; call when the number of replays changed.
  void replayed();

  uint64_t steady_steps() const { return steady_steps_; }
  double steps_per_second() const;
  /// Over the last second or so of running.
  double recent_steps_per_second() const;
  double steady_waits_per_step() const;
  double pacing_per_step() const;
  double device_dry_fraction() const;
  /// Median and 95th percentile of the time between accepted steps, in ms.
  std::pair<double, double> step_ms() const;
  /// One line: what the device waited for, if anything.
  std::string why_slow(int n_threads) const;

 private:
  struct Totals {
    double seconds = 0, dry_seconds = 0, decode_seconds = 0, wait_seconds = 0;
    uint64_t waits = 0, pacing = 0;
  };
  Totals now() const;
  void add_since_base();

  Device& device_;
  bool running_ = false, steady_ = false;
  Totals base_, total_;
  uint64_t steady_steps_ = 0;
  std::vector<float> intervals_ms_;
  std::chrono::steady_clock::time_point last_step_ = {};
  bool has_last_ = false;
};

}  // namespace millrace
