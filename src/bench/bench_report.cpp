// Summaries of a bench, and its file.
#include "bench/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

using nlohmann::ordered_json;

std::vector<double> values_of(const std::vector<const RunRecord*>& runs, double RunRecord::*value) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RunRecord* run : runs) values.push_back(run->*value);
  return values;
}

WindowSummary window_summary(const std::vector<const RunRecord*>& runs, size_t index) {
  WindowSummary out;
  std::vector<double> ms, gaussians, instances, busy, waits;
  for (const RunRecord* run : runs) {
    if (index >= run->windows.size()) continue;
    const StepWindow& window = run->windows[index];
    out.step_begin = window.step_begin;
    out.step_end = window.step_end;
    ms.push_back(window.ms_per_step);
    gaussians.push_back(window.gaussians);
    instances.push_back(window.instances);
    busy.push_back(100 * window.device_busy_fraction);
    waits.push_back(window.waits_per_step);
  }
  out.ms_per_step = spread_of(ms);
  out.gaussians = median(gaussians);
  out.instances = median(instances);
  out.device_busy_percent = median(busy);
  out.waits_per_step = median(waits);
  return out;
}

SideSummary side_summary(const BenchReport& report, size_t side) {
  std::vector<const RunRecord*> runs;
  size_t n_windows = 0;
  for (const RunRecord& run : report.runs) {
    if (run.side != side) continue;
    runs.push_back(&run);
    n_windows = std::max(n_windows, run.windows.size());
  }
  SideSummary out;
  out.n_runs = runs.size();
  for (const RunMetric& metric : run_metrics()) {
    out.metrics.push_back(spread_of(values_of(runs, metric.value)));
  }
  for (size_t i = 0; i < n_windows; ++i) out.windows.push_back(window_summary(runs, i));
  return out;
}

std::vector<double> pair_ratios(const BenchReport& report) {
  std::vector<double> ratios;
  for (uint32_t pair = 0; pair < report.pairs; ++pair) {
    double ms[2] = {RunRecord::kUnknown, RunRecord::kUnknown};
    for (const RunRecord& run : report.runs) {
      if (run.pair == pair && run.side < 2) ms[run.side] = run.ms_per_step;
    }
    const double ratio = ms[1] / ms[0];
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return ratios;
}

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json to_json(const Spread& spread) {
  return {{"median", number(spread.median)},
          {"min", number(spread.min)},
          {"max", number(spread.max)},
          {"mad", number(spread.mad)},
          {"n", spread.n}};
}

ordered_json to_json(const SideSummary& side) {
  ordered_json json = {{"runs", side.n_runs}};
  for (size_t i = 0; i < side.metrics.size(); ++i) {
    json[run_metrics()[i].key] = to_json(side.metrics[i]);
  }
  json["windows"] = ordered_json::array();
  for (const WindowSummary& window : side.windows) {
    json["windows"].push_back({{"step_begin", window.step_begin},
                               {"step_end", window.step_end},
                               {"ms_per_step", to_json(window.ms_per_step)},
                               {"gaussians", number(window.gaussians)},
                               {"instances", number(window.instances)},
                               {"device_busy_percent", number(window.device_busy_percent)},
                               {"waits_per_step", number(window.waits_per_step)}});
  }
  return json;
}

ordered_json to_json(const BenchSummary& summary) {
  ordered_json json = {{"a", to_json(summary.sides[0])}};
  if (summary.sides.size() > 1) {
    json["b"] = to_json(summary.sides[1]);
    json["pair_ratios_b_over_a"] = summary.pair_ratios;
    json["ratio_b_over_a"] = to_json(summary.ratio);
  }
  json["drift_percent_per_run"] = number(summary.drift_percent_per_run);
  return json;
}

}  // namespace

BenchSummary summarise(const BenchReport& report) {
  BenchSummary summary;
  for (size_t side = 0; side < report.sides.size(); ++side) {
    summary.sides.push_back(side_summary(report, side));
  }
  if (report.sides.size() > 1) summary.pair_ratios = pair_ratios(report);
  summary.ratio = spread_of(summary.pair_ratios);
  std::vector<double> relative;
  for (const RunRecord& run : report.runs) {
    relative.push_back(100 * run.ms_per_step / summary.sides.at(run.side).metrics[0].median);
  }
  summary.drift_percent_per_run = slope(relative);
  return summary;
}

std::string to_json_text(const BenchReport& report) {
  ordered_json json = {{"schema", 1},
                       {"date", report.date},
                       {"command", report.command},
                       {"dataset", report.dataset},
                       {"cores", report.cores},
                       {"pairs", report.pairs},
                       {"warm_up", report.warm_up},
                       {"interrupted", report.interrupted},
                       {"failure", report.failure}};
  json["sides"] = ordered_json::array();
  for (const BenchSide& side : report.sides) {
    json["sides"].push_back({{"flags", side.flags}, {"binary", side.binary}});
  }
  if (!report.sides.empty()) json["summary"] = to_json(summarise(report));
  json["runs"] = ordered_json::array();
  for (const RunRecord& run : report.runs) json["runs"].push_back(to_json(run));
  // Paths and what a failed run said may hold bytes that are not UTF-8.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<BenchReport> bench_report_from_json(const std::string& text) {
  const ordered_json json = ordered_json::parse(text, nullptr, false);
  const auto bad = [](const char* what) {
    return Error{ErrorCode::Usage, fmt::format("no bench.json: {}", what)};
  };
  if (!json.is_object()) return bad("not a JSON object");
  for (const char* key : {"sides", "runs"}) {
    if (!json.contains(key) || !json.at(key).is_array()) return bad("sides or runs are missing");
  }
  const auto text_of = [](const ordered_json& object, const char* key) {
    return object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>()
                                                              : std::string();
  };
  const auto count_of = [&](const char* key) {
    return json.contains(key) && json.at(key).is_number_unsigned() ? json.at(key).get<uint32_t>()
                                                                   : 0u;
  };
  BenchReport report;
  report.date = text_of(json, "date");
  report.command = text_of(json, "command");
  report.dataset = text_of(json, "dataset");
  report.failure = text_of(json, "failure");
  report.cores = count_of("cores");
  report.pairs = count_of("pairs");
  report.warm_up = count_of("warm_up");
  report.interrupted = json.contains("interrupted") && json.at("interrupted") == true;
  for (const ordered_json& side : json.at("sides")) {
    report.sides.push_back({text_of(side, "flags"), text_of(side, "binary")});
  }
  if (report.sides.empty() || report.sides.size() > 2) return bad("one or two sides are expected");
  for (const ordered_json& run : json.at("runs")) {
    if (!run.is_object()) return bad("a run is no object");
    report.runs.push_back(run_from_json(run));
    if (report.runs.back().side >= report.sides.size()) return bad("a run belongs to no side");
  }
  return report;
}

}  // namespace millrace
