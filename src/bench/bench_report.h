// BenchReport: what a bench measured, its summary, and bench.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/run_record.h"
#include "bench/statistics.h"

namespace millrace {

/// One of the things compared.
struct BenchSide {
  std::string flags;   // as given
  std::string binary;  // path
};

/// All that was measured, in the order of the runs.
struct BenchReport {
  std::string date, command, dataset;
  uint32_t cores = 0;  // threads that the machine runs at once
  uint32_t pairs = 0, warm_up = 0;
  std::vector<BenchSide> sides;  // one or two
  std::vector<RunRecord> runs;
  bool interrupted = false;
  std::string failure;  // of the run that ended the bench; empty = none
};

/// One window of steps over all runs of a side.
struct WindowSummary {
  uint32_t step_begin = 0, step_end = 0;
  Spread ms_per_step;
  double gaussians = 0, instances = 0, device_busy_percent = 0, waits_per_step = 0;  // medians
};

struct SideSummary {
  size_t n_runs = 0;
  std::vector<Spread> metrics;  // of run_metrics(), in their order
  std::vector<WindowSummary> windows;
};

struct BenchSummary {
  std::vector<SideSummary> sides;
  /// Time per step of B over that of A, for each complete pair. Empty with one side.
  std::vector<double> pair_ratios;
  Spread ratio;
  /// How time per step changed from run to run, in % of each side's median: above 0, the machine
  /// grew slower (thermals, a neighbour). NaN with fewer than two runs.
  double drift_percent_per_run = 0;
};

/// Which side runs `position`-th (0-based) of a bench of `n_sides`: A B, B A, A B, ...
constexpr size_t side_at(uint32_t position, size_t n_sides) {
  if (n_sides < 2) return 0;
  const uint32_t pair = position / 2;
  return (position + pair) % 2;
}

BenchSummary summarise(const BenchReport& report);

/// bench.json: the report, and its summary for readers. Ends with a line end.
std::string to_json_text(const BenchReport& report);
/// The report of a bench.json. Error: Usage, naming what is missing.
Result<BenchReport> bench_report_from_json(const std::string& text);

/// The table on the terminal; lines end with '\n'.
std::string bench_table(const BenchReport& report);
/// The same as a picture, SVG: ms per step by window with spread, the ratio of each pair, and each
/// run in order.
std::string bench_svg(const BenchReport& report);

}  // namespace millrace
