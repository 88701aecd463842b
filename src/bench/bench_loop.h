// The A/B bench: alternating runs of `millrace train`, each a process of its own.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/bench_report.h"

namespace millrace {

struct BenchOptions {
  struct Side {
    std::string flags;                   // as given, for the report
    std::vector<std::string> arguments;  // of the program, up to the output folder
    std::filesystem::path binary;
  };
  std::vector<Side> sides;  // one or two
  uint32_t pairs = 3, warm_up = 1;
  std::filesystem::path output;  // must exist
  bool keep_runs = false;        // keep each run's model and images below output/runs
  std::string command, dataset;  // for the report
};

struct BenchObserver {
  std::function<void(const std::string& line)> progress;  // replaces the last such line
  std::function<void(const std::string& line)> run_ended;
};

/// What a bench came to. `failure` ended it early; what was measured before is in `report`.
struct BenchOutcome {
  BenchReport report;
  std::optional<Error> failure;
};

/// Checks that every binary is there and may be run. Error: Usage.
Result<void> check_binaries(const BenchOptions& options);

/// Runs the warm-up runs and the pairs, and writes bench.json and bench.svg after every run. Errors
/// only of these files (Output); a run that fails or is stopped is an outcome.
Result<BenchOutcome> run_bench_blocking(const BenchOptions& options, const BenchObserver& observer,
                                        const std::atomic<bool>& stop);

/// Path of this program.
std::filesystem::path this_program();

}  // namespace millrace
