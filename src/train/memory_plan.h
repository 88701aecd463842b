// MemoryPlan: what a run will take, known before its first step, and what it gives up to keep its
// budgets.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "train/options.h"
#include "train/schedule.h"

namespace millrace {

/// What a plan is made from.
struct PlanInputs {
  const TrainOptions& options;  // checked
  const Schedule& schedule;     // with the edits of the run
  const std::vector<View>& train_views;
  const std::vector<View>& eval_views;  // held out
  uint64_t n_points = 0;                // that the run may begin with
  uint64_t start_instances = 0;         // of its first frames, at most; 0: not known
  std::vector<uint32_t> saves, evals;   // by the number of steps done, ascending
  // The device, as opened.
  bool shares_host_memory = false;  // host and device are one memory
  bool stages_in_its_pool = false;  // the cpu device
  uint64_t device_bytes = 0;        // that it has
  uint64_t staging_bytes = 0;       // host memory that it transfers through
  int n_threads = 0;                // that compute on the host
  // The host.
  uint64_t resident_bytes = 0;   // that the process has now
  uint64_t available_bytes = 0;  // that it may take beside that
};

/// Fills in what is known of the device and of the host as they are now.
void set_machine(PlanInputs* inputs, const Device& device);

struct MemoryLine {
  std::string name;
  uint64_t host_bytes = 0, device_bytes = 0;
};

/// The most that the run takes at any time, growth to `max_cap` included.
struct MemoryPlan {
  bool shares_host_memory = false;
  std::vector<MemoryLine> lines;  // together host_bytes and device_bytes
  uint64_t host_bytes = 0, device_bytes = 0;
  // Of the host (with the device, if they share memory) and of the device; UINT64_MAX: none known.
  uint64_t ram_budget = 0, vram_budget = 0;
  std::vector<std::string> gave_up;  // to keep them, in this order; empty: nothing

  // What the run goes by.
  uint64_t max_cap = 0;
  uint64_t image_cache_bytes = 0;
  uint64_t instance_budget = 0;     // 0: as the device's memory allows
  uint64_t row_capacity = 0;        // rows to begin with room for
  uint64_t device_limit_bytes = 0;  // of the device's pool
  uint64_t most_waiting_bytes = 0;  // of rendered views that are not yet scored
  uint32_t n_ahead = 0;             // photographs decoded before their turn

  /// Host memory, and the device's where it is the same.
  uint64_t ram_bytes() const { return host_bytes + (shares_host_memory ? device_bytes : 0); }
};

/// The plan of a run. If it does not fit, gives up in this order, and no more than it must: room of
/// the photograph cache, room for instances (larger frames are drawn in bands), Gaussians. Error:
/// OutOfMemory if the least plan does not fit, with what it takes and what to do.
Result<MemoryPlan> plan_memory(const PlanInputs& inputs);

/// The plan for people, line by line.
std::vector<std::string> plan_text(const MemoryPlan& plan);
/// The plan in report.json and in events.
nlohmann::ordered_json to_json(const MemoryPlan& plan);

}  // namespace millrace
