// What a run of given settings takes: its own allocations, tried on a device without memory, and
// what its host work takes beside.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "train/memory_plan.h"

namespace millrace {

/// What a plan may turn.
struct MemorySettings {
  uint64_t max_cap = 0;
  uint64_t image_cache_bytes = 0;
  uint64_t instance_budget = 0;  // 0: none
  bool rows_at_once = false;     // room for all rows from the beginning
  bool is_frugal = false;        // little is decoded ahead and waits to be scored
};

struct RunSizes {
  // The device.
  std::map<std::string, uint64_t> by_label;  // in use at the end of the run
  uint64_t device_peak_bytes = 0;            // staging in its pool included
  uint64_t device_start_bytes = 0;           // while the model is made
  uint64_t band_bytes = 0;  // that drawing in bands would take, if it is not planned
  // The host, beside the program.
  uint64_t start_bytes = 0;   // while the model is made
  uint64_t decode_bytes = 0;  // photographs on their way to the device
  uint64_t output_bytes = 0;  // evaluation and saving
  bool decodes_in_training = false;
  // What follows from the settings.
  uint64_t n_rows = 0;       // at most
  uint64_t n_instances = 0;  // room for
  uint64_t row_capacity = 0;
  uint64_t most_waiting_bytes = 0;
  uint32_t n_ahead = 0;
};

RunSizes size_run(const PlanInputs& inputs, const MemorySettings& settings);

/// The most rows of the run, if it never has more than `max_cap`.
uint64_t most_rows(const PlanInputs& inputs, uint64_t max_cap);
/// Bytes of the largest training target.
uint64_t largest_target_bytes(const std::vector<View>& views);

}  // namespace millrace
