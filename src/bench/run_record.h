// RunRecord: the figures of one training run that a bench compares.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/step_windows.h"

namespace millrace {

/// One measured run. A figure that the run's report.json does not have is NaN.
struct RunRecord {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  size_t side = 0;  // 0: A, 1: B
  uint32_t pair = 0;
  double start_s = 0;             // since the bench began
  double seconds = 0;             // the whole process
  double ms_per_step = kUnknown;  // time of the steady steps / their number
  double ms_median = kUnknown, ms_p95 = kUnknown;
  double device_busy_percent = kUnknown;  // over the steady windows
  double unaccounted_ms = kUnknown;       // per step: ms_per_step less the device's busy time
  double waits_per_step = kUnknown, pacing_per_step = kUnknown;
  double host_peak_bytes = kUnknown, device_peak_bytes = kUnknown;
  double gaussians = kUnknown, instances = kUnknown;  // at the end; mean over steps
  double loss = kUnknown, psnr = kUnknown;
  std::string commit, device, state_sha256;
  std::vector<StepWindow> windows;
};

/// A figure of RunRecord as tables show it.
struct RunMetric {
  const char* key;    // in bench.json
  const char* label;  // on the terminal
  double RunRecord::*value;
  double unit;  // what the value is divided by for the terminal
  int digits;   // behind the point there
};
/// Every figure that is compared, the time first.
std::span<const RunMetric> run_metrics();

/// The figures of a run's report.json. Older reports, without windows or loss, do. Error: Internal,
/// if `text` is not JSON or has no speed.
Result<RunRecord> record_of_report(const std::string& text, const std::string& file_name);

/// For bench.json. What is unknown is null.
nlohmann::ordered_json to_json(const RunRecord& run);
RunRecord run_from_json(const nlohmann::ordered_json& json);

}  // namespace millrace
