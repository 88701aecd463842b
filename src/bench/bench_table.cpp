// The bench as text.
#include <fmt/format.h>

#include <cmath>

#include "bench/bench_report.h"

namespace millrace {
namespace {

std::string number_text(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "-";
}

std::string range_text(const Spread& spread, double unit, int digits) {
  if (spread.n == 0) return "-";
  return number_text(spread.min / unit, digits) + " .. " + number_text(spread.max / unit, digits);
}

std::string ratio_text(double b, double a) {
  return a != 0 ? number_text(b / a, 3) : std::string("-");
}

std::string head_line(const BenchReport& report, size_t side) {
  const BenchSide& given = report.sides[side];
  std::string line = fmt::format("{}  {}", side == 0 ? "A" : "B",
                                 given.flags.empty() ? "(the common flags alone)" : given.flags);
  for (const RunRecord& run : report.runs) {
    if (run.side != side) continue;
    line += fmt::format("  [{}, commit {}]", run.device, run.commit.empty() ? "?" : run.commit);
    break;
  }
  return line + "\n";
}

std::string metric_rows(const BenchSummary& summary) {
  std::string text = fmt::format("{:<18}", "");
  for (size_t side = 0; side < summary.sides.size(); ++side) {
    text += fmt::format(" {:>12} {:>24} {:>9}", side == 0 ? "A median" : "B median", "min .. max",
                        "MAD");
  }
  text += summary.sides.size() > 1 ? fmt::format(" {:>7}\n", "B/A") : "\n";
  for (size_t i = 0; i < run_metrics().size(); ++i) {
    const RunMetric& metric = run_metrics()[i];
    text += fmt::format("{:<18}", metric.label);
    for (const SideSummary& side : summary.sides) {
      const Spread& spread = side.metrics[i];
      text += fmt::format(" {:>12} {:>24} {:>9}",
                          number_text(spread.median / metric.unit, metric.digits),
                          range_text(spread, metric.unit, metric.digits),
                          number_text(spread.mad / metric.unit, metric.digits));
    }
    if (summary.sides.size() > 1) {
      const double a = summary.sides[0].metrics[i].median;
      text += fmt::format(" {:>7}", ratio_text(summary.sides[1].metrics[i].median, a));
    }
    text += "\n";
  }
  return text;
}

std::string window_rows(const BenchSummary& summary) {
  size_t n_windows = 0;
  for (const SideSummary& side : summary.sides) {
    n_windows = std::max(n_windows, side.windows.size());
  }
  if (n_windows == 0) return "";
  std::string text = fmt::format("\n{:<16}", "steps");
  for (size_t side = 0; side < summary.sides.size(); ++side) {
    text += fmt::format(" {:>9} {:>8} {:>9} {:>10} {:>6} {:>6}", side == 0 ? "A ms" : "B ms", "MAD",
                        "Gaussians", "instances", "busy %", "waits");
  }
  text += summary.sides.size() > 1 ? fmt::format(" {:>7}\n", "B/A") : "\n";
  for (size_t i = 0; i < n_windows; ++i) {
    std::string steps, row;
    for (const SideSummary& side : summary.sides) {
      if (i >= side.windows.size()) {
        row += fmt::format(" {:>53}", "-");
        continue;
      }
      const WindowSummary& w = side.windows[i];
      if (steps.empty()) steps = fmt::format("{} .. {}", w.step_begin, w.step_end);
      row += fmt::format(" {:>9} {:>8} {:>9} {:>10} {:>6} {:>6}",
                         number_text(w.ms_per_step.median, 3), number_text(w.ms_per_step.mad, 3),
                         number_text(w.gaussians, 0), number_text(w.instances, 0),
                         number_text(w.device_busy_percent, 1), number_text(w.waits_per_step, 3));
    }
    if (summary.sides.size() > 1 && i < summary.sides[0].windows.size() &&
        i < summary.sides[1].windows.size()) {
      row += fmt::format(" {:>7}", ratio_text(summary.sides[1].windows[i].ms_per_step.median,
                                              summary.sides[0].windows[i].ms_per_step.median));
    }
    text += fmt::format("{:<16}", steps) + row + "\n";
  }
  return text;
}

}  // namespace

std::string bench_table(const BenchReport& report) {
  const BenchSummary summary = summarise(report);
  std::string text;
  for (size_t side = 0; side < report.sides.size(); ++side) text += head_line(report, side);
  text += fmt::format("{} of {} runs, {} warm-up, {} cores\n\n", report.runs.size(),
                      report.pairs * report.sides.size(), report.warm_up, report.cores);
  if (report.runs.empty()) return text;
  text += metric_rows(summary);
  if (!summary.pair_ratios.empty()) {
    text += fmt::format("\nB/A of each pair: median {:.4f} ({}, MAD {:.4f}):", summary.ratio.median,
                        range_text(summary.ratio, 1, 4), summary.ratio.mad);
    for (const double ratio : summary.pair_ratios) text += fmt::format(" {:.4f}", ratio);
    text += "\n";
  }
  if (std::isfinite(summary.drift_percent_per_run)) {
    text += fmt::format("drift: {:+.2f} % from run to run ({})\n", summary.drift_percent_per_run,
                        "above 0, the machine grew slower");
  }
  return text + window_rows(summary);
}

}  // namespace millrace
