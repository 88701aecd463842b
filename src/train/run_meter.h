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

/// Counts only while running, and only what lies between two accepted steps with nothing but steps
/// between them: evaluation, saving and replays are left out.
class RunMeter {
 public:
  /// `photographs` may be null. For up to `n_steps` steps, step() allocates nothing.
  explicit RunMeter(Device& device, const Photographs* photographs = nullptr, uint64_t n_steps = 0);

  void resume();
  void pause();
  /// Tells of an accepted step.
  void step(uint32_t step);
  /// Time and waits since the last accepted step do not count: something else than the next step
  /// came, such as a replay or an evaluation.
  void leave_out();
  /// A replay ended with the step that step() tells of next: neither it nor its time counts.
  void replayed();

  uint64_t steady_steps() const { return steady_steps_; }
  double steps_per_second() const;
  /// Over the last second or so of running.
  double recent_steps_per_second() const;
  double steady_waits_per_step() const;
  double pacing_per_step() const;
  double device_dry_fraction() const;
  /// Of the time between accepted steps, in ms; the last median is that of the last kLastSteps.
  struct StepMs {
    double median = 0, p95 = 0, last_median = 0;
    bool operator==(const StepMs&) const = default;
  };
  static constexpr size_t kLastSteps = 1000;
  StepMs step_ms() const;
  /// What why_slow() judges, but for queued_steps.
  SlowFigures figures() const;

 private:
  struct Totals {
    double seconds = 0, dry_seconds = 0, reload_seconds = 0;
    uint64_t n_reloads = 0;
    std::vector<WaitLedger::Totals> sites;  // by the ledger's rows, which only become more
  };
  void read_now(Totals* totals) const;
  void add_until(const Totals& end);

  Device& device_;
  const Photographs* photographs_;
  bool running_ = false, steady_ = false;
  Totals base_, total_;
  Totals last_;  // at the last accepted step, if has_last_
  uint64_t steady_steps_ = 0;
  std::vector<float> intervals_ms_;
  std::chrono::steady_clock::time_point last_step_ = {};
  bool has_last_ = false, replayed_ = false;
};

}  // namespace millrace
