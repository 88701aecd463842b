// StepWindows: speed, sizes, device use and waits over a run, in ten equal windows of steps.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "device/device.h"
#include "kernels/splat_params.h"

namespace millrace {

/// One window of report.json. Means over its steps; NaN where nothing was measured.
struct StepWindow {
  uint32_t step_begin = 0, step_end = 0;  // [begin, end)
  double ms_per_step = 0;
  double gaussians = 0, instances = 0;
  double device_busy_fraction = 0;  // of the time that ms_per_step counts
  double waits_per_step = 0;        // of the host, Pacing excluded
};

/// Counts only while running, as RunMeter does, but from step 0 on and with replays; evaluation and
/// saving are left out. Steps that are accepted while paused (the queue's last ones) count for the
/// sizes alone. Allocates nothing.
class StepWindows {
 public:
  static constexpr uint32_t kMaxWindows = 10;
  static constexpr size_t kLossWindow = 50;

  /// `n_steps`: the length of the run; shorter runs than kMaxWindows steps have fewer windows.
  StepWindows(Device& device, uint32_t n_steps);

  void resume();
  void pause();
  /// What happened since the last accepted step does not count.
  void leave_out();
  /// Tells of an accepted step, in order.
  void step(const StepMetrics& metrics);

  /// The windows that have begun.
  std::vector<StepWindow> windows() const;
  /// Mean loss of the last kLossWindow accepted steps; NaN before the first.
  double recent_loss() const;

 private:
  struct Totals {
    std::chrono::steady_clock::time_point time = {};
    uint64_t busy_ns = 0, waits = 0;
  };
  struct Sums {
    double seconds = 0, busy_seconds = 0, gaussians = 0, instances = 0;
    uint64_t waits = 0;
    uint32_t n_steps = 0, n_timed = 0;
  };
  Totals now() const;
  void add_until(const Totals& end);
  uint32_t end_of(uint32_t window) const;

  Device& device_;
  uint32_t n_steps_, n_windows_;
  bool running_ = false;
  uint32_t current_ = 0;
  Totals base_;
  Totals last_;  // at the last accepted step since base_
  bool has_last_ = false;
  std::array<Sums, kMaxWindows> sums_ = {};
  std::array<float, kLossWindow> losses_ = {};
  uint64_t n_losses_ = 0;
};

/// report.json's `windows`; NaN becomes null.
nlohmann::ordered_json to_json(const std::vector<StepWindow>& windows);

}  // namespace millrace
