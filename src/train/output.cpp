// Files of a run.
#include "train/output.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "train/version.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

ordered_json number_or_null(bool has, double value) {
  return has && std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

}  // namespace

fs::path OutputFolder::ply(uint32_t iteration) const {
  return root / "point_cloud" / fmt::format("iteration_{}", iteration) / "point_cloud.ply";
}
fs::path OutputFolder::stats(uint32_t iteration) const {
  return root / "stats" / fmt::format("val_step{:04d}.json", iteration);
}
fs::path OutputFolder::render(const std::string& view_name) const {
  return (root / "renders" / view_name).replace_extension(".png");
}

Result<OutputFolder> open_output_folder(const std::string& output, const std::string& dataset,
                                        bool overwrite) {
  OutputFolder folder;
  if (output.empty()) {
    std::error_code ec;
    fs::path name = fs::absolute(dataset, ec).lexically_normal();  // "." has no name of its own
    if (!name.has_filename()) name = name.parent_path();
    const std::time_t now = std::time(nullptr);
    folder.root = fs::path("runs") /
                  fmt::format("{}-{:%Y%m%d-%H%M%S}", name.filename().string(), fmt::localtime(now));
    // Making the folder claims it: runs that start within one second must not share one.
    fs::create_directories("runs", ec);
    const std::string stem = folder.root.string();
    for (int i = 2; i < 1000 && !fs::create_directory(folder.root, ec) && !ec; ++i) {
      folder.root = fmt::format("{}-{}", stem, i);
    }
  } else {
    folder.root = output;
  }
  std::error_code ec;
  const bool earlier =
      fs::exists(folder.report(), ec) || fs::exists(folder.root / "point_cloud", ec);
  if (earlier && !overwrite) {
    return Error{ErrorCode::Usage,
                 fmt::format("{} holds an earlier run; choose another folder with -o, or "
                             "replace that run with --overwrite",
                             folder.root.string())};
  }
  fs::create_directories(folder.root, ec);
  if (ec) {
    return Error{ErrorCode::Output, fmt::format("cannot make the output folder {}: {}",
                                                folder.root.string(), ec.message())};
  }
  // A probe file now is better than a failed save after an hour.
  const fs::path probe = folder.root / ".millrace-write-test";
  MILLRACE_TRY(write_file_atomically(probe, "ok"));
  fs::remove(probe, ec);
  folder.replaces_earlier = earlier;
  return folder;
}

void remove_earlier_run(OutputFolder& folder) {
  if (!folder.replaces_earlier) return;
  folder.replaces_earlier = false;
  std::error_code ec;
  for (const char* name : {"point_cloud", "renders", "stats"})
    fs::remove_all(folder.root / name, ec);
  for (const fs::path& file : {folder.report(), folder.contact_sheet(), folder.exposures()})
    fs::remove(file, ec);
}

Result<void> write_stats(const OutputFolder& folder, const EvalResult& result) {
  const bool has = result.n_views > 0;
  ordered_json json;
  json["step"] = result.step;
  json["psnr"] = number_or_null(has, result.psnr);
  json["ssim"] = number_or_null(has, result.ssim);
  json["psnr_cc"] = number_or_null(has, result.psnr_cc);
  json["psnr_gain"] = number_or_null(has, result.psnr_gain);
  json["num_GS"] = result.gaussians;
  json["time"] = result.n_views ? result.seconds / result.n_views : 0.0;
  json["views"] = result.n_views;
  return write_file_atomically(folder.stats(result.step), json.dump(2) + "\n");
}

Result<void> write_report(const OutputFolder& folder, const TrainSummary& summary,
                          const RunReport& run) {
  ordered_json json;
  json["schema"] = 1;
  json["version"] = kVersion;
  json["commit"] = kCommit;
  json["dataset"] = run.dataset;
  json["device"] = {
      {"id", run.device_id}, {"name", run.device_name}, {"driver", run.device_driver}};
  json["interrupted"] = summary.interrupted;
  json["steps"] = summary.steps;
  json["steps_per_second"] = summary.steps_per_second;
  json["seconds"] = summary.seconds;
  json["ms_per_step"] = {
      {"median", run.ms.median}, {"p95", run.ms.p95}, {"last_1000_median", run.ms.last_median}};
  json["device_dry_fraction"] = run.device_dry_fraction;
  json["mean_queued_steps"] = run.mean_queued_steps;
  json["why_slow"] = summary.why_slow;
  json["psnr"] = number_or_null(run.has_psnr, summary.psnr);
  json["ssim"] = number_or_null(run.has_psnr, summary.ssim);
  json["psnr_cc"] = number_or_null(run.has_psnr, run.psnr_cc);
  json["psnr_gain"] = number_or_null(run.has_psnr, run.psnr_gain);
  json["gaussians"] = summary.gaussians;
  json["instances"] = {
      {"mean", run.instances_mean}, {"max", run.instances_max}, {"bands", run.most_bands}};
  json["replays"] = summary.replays;
  json["skipped_rows"] = run.skipped_rows;
  json["state_sha256"] = summary.state_sha256;
  ordered_json by_kind = ordered_json::object();
  for (const MemoryStats::Kind& kind : run.memory.by_label) by_kind[kind.label] = kind.peak_bytes;
  json["peak_bytes"] = {{"host", run.host_peak_bytes},
                        {"device", run.memory.peak_reserved_bytes},
                        {"device_in_use", run.memory.peak_in_use_bytes},
                        {"by_kind", by_kind}};
  json["memory_plan"] = to_json(run.plan);
  ordered_json sites = ordered_json::array();
  for (const WaitRecord& row : run.waits) {
    sites.push_back({{"site", row.site},
                     {"where", row.where},
                     {"reason", to_string(row.reason)},
                     {"count", row.count},
                     {"ns", row.blocked_ns},
                     {"device_dry_ns", row.device_dry_ns}});
  }
  json["waits"] = {{"steady_per_step", run.steady_waits_per_step},
                   {"pacing_per_step", run.pacing_per_step},
                   {"by_site", sites}};
  json["loss"] = number_or_null(true, run.loss);
  json["windows"] = to_json(run.windows);
  return write_file_atomically(folder.report(), json.dump(2) + "\n");
}

}  // namespace millrace
