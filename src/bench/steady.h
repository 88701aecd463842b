// Steady steps: the time of a training step on a given model, without refinement, with the counts
// that explain it (CONTRACTS.md, measuring rules).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/gaussian_cloud.h"
#include "base/result.h"
#include "bench/statistics.h"
#include "train/options.h"

namespace millrace {

struct SteadyOptions {
  TrainOptions train;  // dataset, size, device, rates; what refines is switched off
  std::string model;   // PLY
  uint64_t n_gaussians = 0;
  uint32_t n_steps = 200;
  uint32_t n_warm_up = 20;
};

/// What one stage of a step works on, counted: the bytes that it cannot avoid to move, and the
/// floating-point operations of the scalar reference (operations.h).
struct StageCount {
  const char* stage;
  const char* unit;  // of `count`
  double count = 0;
  double bytes = 0, operations = 0;
  double floor_ms = 0;  // the longer of its bytes and its operations at the device's speeds
  double ms = 0;        // of a step, from timing events; 0 where the device keeps none
};

/// One kernel in a step, from timing events; `stage` is the index in SteadyReport::stages, or -1.
struct KernelTime {
  std::string name;
  double launches = 0, ms = 0;
  int stage = -1;
};

struct SteadyReport {
  std::string dataset, model, device;
  uint64_t n_gaussians = 0, n_in_file = 0;
  uint32_t n_views = 0, n_steps = 0;
  Spread ms;  // of a step: the time between accepted steps
  double ms_mean = 0;
  double visible = 0, instances = 0;                 // means over the measured steps
  uint64_t first_instances = 0, last_instances = 0;  // one pass over the views each, mean
  double processed_share = 0;  // of the instances: walked before their tile was opaque
  double walked_pairs = 0;     // (Gaussian, pixel) pairs walked per frame, mean
  double blended_pairs = 0;    // of these alpha >= 1/255
  uint32_t n_sampled = 0;      // frames from which the last three come
  double launches_per_step = 0, waits_per_step = 0, pacing_per_step = 0;
  double device_busy_percent = 0;
  uint64_t peak_device_bytes = 0, replays = 0;
  // What the peak is made of: room for instances, pixels of the largest frame, photographs.
  uint64_t instance_capacity = 0, n_pixels = 0, photograph_bytes = 0;
  std::vector<StageCount> stages;
  std::vector<KernelTime> kernels;  // slowest first, means over `n_timed` further steps
  uint32_t n_timed = 0;
  // Of the device, measured in the same run.
  double copy_bytes_per_second = 0;  // bytes read plus bytes written
  double operations_per_second = 0;  // of iterate_affine()
  double launch_ms = 0;              // of a launch with nothing to do behind another one
  double floor_ms = 0;               // of the stages, and of so many launches
  bool interrupted = false;
};

/// `cloud` with `count` rows: each row is repeated in place as often as it takes, copies side by
/// side; with fewer rows than there are, an even choice.
GaussianCloud repeated(const GaussianCloud& cloud, uint64_t count);

/// The stages of one step from their counts. `n_pixels`: mean per frame.
std::vector<StageCount> stage_counts(const SteadyReport& report, int sh_degree, double n_pixels);

/// The floors of the stages and of the step, from the device's speeds.
void add_floors(SteadyReport& report);

/// Adds the kernels' times to their stages.
void add_kernel_times(SteadyReport& report, std::vector<KernelTime> kernels);

/// Trains `n_warm_up + n_steps` steps on the repeated model: loss, backward and Adam on;
/// refinement, reordering and noise off; training views in turn. Errors: those of a training run.
Result<SteadyReport> run_steady_blocking(const SteadyOptions& options,
                                         const std::function<void(const std::string&)>& tell,
                                         const std::atomic<bool>& stop);

/// For people.
std::string steady_table(const SteadyReport& report);
/// For programs.
nlohmann::ordered_json to_json(const SteadyReport& report);

}  // namespace millrace
