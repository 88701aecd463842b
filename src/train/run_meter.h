// RunMeter: the time, waits and device idleness of the steps that count.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "device/device.h"
#include "train/photographs.h"
#include "train/why_slow.h"

namespace millrace {

/// Steps from this one on are steady.
constexpr uint32_t kFirstSteadyStep = 20;

/// Counts only while running: evaluation and saving are put between pause() and resume().
class RunMeter {
 public:
  /// `photographs` may be null. For up to `n_steps` steps, step() allocates nothing.
  explicit RunMeter(Device& device, const Photographs* photographs = nullptr, uint64_t n_steps = 0);

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
  /// What why_slow() judges, but for queued_steps.
  SlowFigures figures() const;

 private:
  struct SiteTotals {
    uint64_t count = 0, blocked_ns = 0;
  };
  struct Totals {
    double seconds = 0, dry_seconds = 0, reload_seconds = 0;
    uint64_t n_reloads = 0;
    std::vector<SiteTotals> sites;  // by the ledger's rows, which only become more
  };
  Totals now() const;
  void add_since_base();

  Device& device_;
  const Photographs* photographs_;
  bool running_ = false, steady_ = false;
  Totals base_, total_;
  uint64_t steady_steps_ = 0;
  std::vector<float> intervals_ms_;
  std::chrono::steady_clock::time_point last_step_ = {};
  bool has_last_ = false;
};

}  // namespace millrace
