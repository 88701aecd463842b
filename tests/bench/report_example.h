// A bench report made by hand, for the tests of report, table and plot.
#pragma once

#include "bench/bench_report.h"

namespace millrace::test {

/// A run of `ms` per step with two windows.
inline RunRecord run_of(size_t side, uint32_t pair, double ms) {
  RunRecord run;
  run.side = side;
  run.pair = pair;
  run.start_s = 10.0 * pair;
  run.seconds = 5;
  run.ms_per_step = ms;
  run.ms_median = ms;
  run.device_busy_percent = 90;
  run.unaccounted_ms = ms / 10;
  run.waits_per_step = 0;
  run.pacing_per_step = 1;
  run.host_peak_bytes = 3 << 20;
  run.device_peak_bytes = 2 << 20;
  run.gaussians = 1000;
  run.loss = 0.125;
  run.commit = "abc1234";
  run.device = "cpu: test";
  run.windows = {{0, 50, ms * 0.5, 900, 4000, 0.8, 0}, {50, 100, ms * 1.5, 1000, 5000, 0.95, 0}};
  return run;
}

/// Three pairs, A at 10, 11, 12 ms and B twice, twice and three times as slow.
inline BenchReport example_report() {
  BenchReport report;
  report.date = "2026-01-02T03:04:05Z";
  report.command = "millrace bench scene --a '' --b '--threads 1'";
  report.dataset = "scene";
  report.cores = 2;
  report.pairs = 3;
  report.warm_up = 1;
  report.sides = {{"", "millrace"}, {"--threads 1 --images 'a<b>&c'", "millrace"}};
  report.runs = {run_of(0, 0, 10), run_of(1, 0, 20), run_of(1, 1, 22),
                 run_of(0, 1, 11), run_of(0, 2, 12), run_of(1, 2, 36)};
  return report;
}

}  // namespace millrace::test
