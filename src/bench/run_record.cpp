// From report.json to a record, and a record as JSON.
#include "bench/run_record.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "train/run_meter.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

constexpr double kMebibyte = 1 << 20;

constexpr std::array<RunMetric, 13> kMetrics = {{
    {"ms_per_step", "ms per step", &RunRecord::ms_per_step, 1, 3},
    {"ms_median", "  median step", &RunRecord::ms_median, 1, 3},
    {"ms_p95", "  95th percentile", &RunRecord::ms_p95, 1, 3},
    {"device_busy_percent", "device busy %", &RunRecord::device_busy_percent, 1, 1},
    {"unaccounted_ms", "unaccounted ms", &RunRecord::unaccounted_ms, 1, 3},
    {"waits_per_step", "waits per step", &RunRecord::waits_per_step, 1, 3},
    {"pacing_per_step", "pacing per step", &RunRecord::pacing_per_step, 1, 3},
    {"host_peak_bytes", "peak host MiB", &RunRecord::host_peak_bytes, kMebibyte, 1},
    {"device_peak_bytes", "peak device MiB", &RunRecord::device_peak_bytes, kMebibyte, 1},
    {"gaussians", "Gaussians", &RunRecord::gaussians, 1, 0},
    {"instances", "instances", &RunRecord::instances, 1, 0},
    {"loss", "loss", &RunRecord::loss, 1, 5},
    {"psnr", "PSNR", &RunRecord::psnr, 1, 3},
}};

/// The number at `path` ("/waits/pacing_per_step"), or unknown.
double number_at(const ordered_json& json, const char* path) {
  const ordered_json::json_pointer at(path);
  if (!json.contains(at) || !json.at(at).is_number()) return RunRecord::kUnknown;
  return json.at(at).get<double>();
}

std::string text_at(const ordered_json& json, const char* path) {
  const ordered_json::json_pointer at(path);
  return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : "";
}

std::vector<StepWindow> windows_from_json(const ordered_json& json) {
  std::vector<StepWindow> windows;
  if (!json.is_array()) return windows;
  for (const ordered_json& row : json) {
    const double begin = number_at(row, "/step_begin"), end = number_at(row, "/step_end");
    if (!(begin >= 0 && end > begin && end <= UINT32_MAX)) continue;
    windows.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                       number_at(row, "/ms_per_step"), number_at(row, "/gaussians"),
                       number_at(row, "/instances"), number_at(row, "/device_busy_fraction"),
                       number_at(row, "/waits_per_step")});
  }
  return windows;
}

/// Time-weighted over the windows from `first_step` on.
double busy_percent(const std::vector<StepWindow>& windows, uint32_t first_step) {
  double busy = 0, time = 0;
  for (const StepWindow& window : windows) {
    const double ms = window.ms_per_step * (window.step_end - window.step_begin);
    if (window.step_begin < first_step || !std::isfinite(ms * window.device_busy_fraction))
      continue;
    busy += ms * window.device_busy_fraction;
    time += ms;
  }
  return time > 0 ? 100 * busy / time : RunRecord::kUnknown;
}

}  // namespace

std::span<const RunMetric> run_metrics() { return kMetrics; }

Result<RunRecord> record_of_report(const std::string& text, const std::string& file_name) {
  const ordered_json json = ordered_json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return Error{ErrorCode::Internal, fmt::format("{} is not a JSON object", file_name)};
  }
  RunRecord run;
  const double steps_per_second = number_at(json, "/steps_per_second");
  if (!(steps_per_second > 0)) {
    return Error{ErrorCode::Usage,
                 fmt::format("{}: the run was too short to be measured; steps count from step {} "
                             "on, so give more (--iterations)",
                             file_name, kFirstSteadyStep)};
  }
  run.ms_per_step = 1000 / steps_per_second;
  run.ms_median = number_at(json, "/ms_per_step/median");
  run.ms_p95 = number_at(json, "/ms_per_step/p95");
  run.seconds = number_at(json, "/seconds");
  run.waits_per_step = number_at(json, "/waits/steady_per_step");
  run.pacing_per_step = number_at(json, "/waits/pacing_per_step");
  run.host_peak_bytes = number_at(json, "/peak_bytes/host");
  run.device_peak_bytes = number_at(json, "/peak_bytes/device");
  run.gaussians = number_at(json, "/gaussians");
  run.instances = number_at(json, "/instances/mean");
  run.loss = number_at(json, "/loss");
  run.psnr = number_at(json, "/psnr");
  run.commit = text_at(json, "/commit");
  run.device = text_at(json, "/device/id");
  const std::string name = text_at(json, "/device/name");
  if (!name.empty()) run.device += ": " + name;
  run.state_sha256 = text_at(json, "/state_sha256");
  if (json.contains("windows")) run.windows = windows_from_json(json.at("windows"));
  run.device_busy_percent = busy_percent(run.windows, kFirstSteadyStep);
  if (!std::isfinite(run.device_busy_percent)) {
    run.device_busy_percent = busy_percent(run.windows, 0);
  }
  run.unaccounted_ms = run.ms_per_step * (1 - run.device_busy_percent / 100);
  return run;
}

ordered_json to_json(const RunRecord& run) {
  ordered_json json = {{"side", run.side == 0 ? "a" : "b"},
                       {"pair", run.pair},
                       {"start_s", run.start_s},
                       {"seconds", run.seconds}};
  for (const RunMetric& metric : kMetrics) {
    const double value = run.*metric.value;
    json[metric.key] = std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
  }
  json["commit"] = run.commit;
  json["device"] = run.device;
  json["state_sha256"] = run.state_sha256;
  json["windows"] = to_json(run.windows);
  return json;
}

RunRecord run_from_json(const ordered_json& json) {
  RunRecord run;
  run.side = text_at(json, "/side") == "b" ? 1 : 0;
  run.pair = json.value("pair", 0u);
  run.start_s = number_at(json, "/start_s");
  run.seconds = number_at(json, "/seconds");
  for (const RunMetric& metric : kMetrics) {
    run.*metric.value = json.contains(metric.key) && json.at(metric.key).is_number()
                            ? json.at(metric.key).get<double>()
                            : RunRecord::kUnknown;
  }
  run.commit = text_at(json, "/commit");
  run.device = text_at(json, "/device");
  run.state_sha256 = text_at(json, "/state_sha256");
  if (json.contains("windows")) run.windows = windows_from_json(json.at("windows"));
  return run;
}

}  // namespace millrace
