// Steady steps: the repeated model, the counts of each stage, and the report as text and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/operations.h"
#include "bench/steady.h"
#include "kernels/splat_params.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

void append_row(std::vector<float>& to, const std::vector<float>& from, uint64_t row,
                uint64_t width) {
  const auto begin = from.begin() + static_cast<long>(row * width);
  to.insert(to.end(), begin, begin + static_cast<long>(width));
}

}  // namespace

GaussianCloud repeated(const GaussianCloud& cloud, uint64_t count) {
  GaussianCloud out;
  out.sh_degree = cloud.sh_degree;
  const uint64_t n = cloud.count();
  const uint64_t rest = uint64_t{3} * static_cast<uint64_t>(sh_rest_count(cloud.sh_degree));
  for (uint64_t i = 0; n > 0 && i < count; ++i) {
    const uint64_t row = i * n / count;
    append_row(out.means, cloud.means, row, 3);
    append_row(out.log_scales, cloud.log_scales, row, 3);
    append_row(out.rotations, cloud.rotations, row, 4);
    append_row(out.opacities, cloud.opacities, row, 1);
    append_row(out.sh0, cloud.sh0, row, 3);
    append_row(out.sh_rest, cloud.sh_rest, row, rest);
  }
  return out;
}

// Each value that a stage must read or write counts once, and each operation that the result needs;
// caches, sorting passes, what is read twice and pairs that contribute nothing are not in it, so
// that the sum is a floor.
std::vector<StageCount> stage_counts(const SteadyReport& report, int sh_degree, double n_pixels) {
  constexpr double kFloat = 4, kWord = 4;
  const auto n = static_cast<double>(report.n_gaussians);
  const double rest_lanes = 3.0 * sh_rest_count(sh_degree);
  const double geometry = static_cast<double>(kGeometryLanes) * kFloat, rest = rest_lanes * kFloat;
  const double visible = report.visible, instances = report.instances;
  const double walked = report.processed_share * instances;
  const double projected = sizeof(Projected), pairs = report.blended_pairs;
  const double parameters = static_cast<double>(kGeometryLanes) + rest_lanes;
  return {
      {"project", "Gaussians", n, n * (geometry + 2 * kWord) + visible * (rest + projected),
       n * kProjectOperations + visible * kShOperations},
      {"emit instances", "instances", instances, visible * 2 * kWord + instances * 2 * kWord, 0},
      {"sort instances", "instances", instances, instances * 3 * kWord, 0},
      {"blend", "instances walked", walked,
       walked * (2 * kWord + projected) + n_pixels * (3 * kFloat + kFloat + kWord),
       pairs * kBlendForwardOperations},
      {"loss", "pixels", n_pixels, n_pixels * (2 * 3 * kFloat + 3 + 2 * 9 * kFloat),
       3 * n_pixels * (kLossForwardOperations + kLossBackwardOperations)},
      {"blend backward", "instances walked", walked,
       walked * (2 * kWord + projected + sizeof(InstanceGradient)) +
           n_pixels * (3 * kFloat + kFloat + kWord),
       pairs * kBlendBackwardOperations},
      {"project backward, Adam", "Gaussians", n,
       instances * sizeof(InstanceGradient) + n * 6 * (geometry + rest),
       visible * (kRowBackwardOperations + kShOperations) + n * parameters * kAdamOperations},
  };
}

void add_floors(SteadyReport& report) {
  if (report.copy_bytes_per_second <= 0 || report.operations_per_second <= 0) return;
  report.floor_ms = report.launches_per_step * report.launch_ms;
  for (StageCount& stage : report.stages) {
    stage.floor_ms = 1000 * std::max(stage.bytes / report.copy_bytes_per_second,
                                     stage.operations / report.operations_per_second);
    report.floor_ms += stage.floor_ms;
  }
}

void add_kernel_times(SteadyReport& report, std::vector<KernelTime> kernels) {
  // Stages in the order of stage_counts().
  static const std::map<std::string, int> kStages = {
      {"project", 0},
      {"radix_sort_pairs", 1},
      {"scan_tiles", 1},
      {"emit_instances", 1},
      {"sort_instances", 2},
      {"blend_forward", 3},
      {"photometric_forward", 4},
      {"photometric_backward", 4},
      {"photometric_reduce", 4},
      {"error_map", 4},
      {"pixel_weights", 4},
      {"edge_loss", 4},
      {"opacity_penalty", 4},
      {"blend_backward", 5},
      {"project_backward", 6},
  };
  std::ranges::sort(kernels, std::greater{}, &KernelTime::ms);
  for (KernelTime& kernel : kernels) {
    const auto stage = kStages.find(kernel.name);
    if (stage == kStages.end()) continue;
    kernel.stage = stage->second;
    report.stages[static_cast<size_t>(kernel.stage)].ms += kernel.ms;
  }
  report.kernels = std::move(kernels);
}

std::string steady_table(const SteadyReport& r) {
  std::string text =
      fmt::format("{:.3f} ms per step (median of {}; {:.3f} .. {:.3f}, MAD {:.3f}; mean {:.3f})\n",
                  r.ms.median, r.ms.n, r.ms.min, r.ms.max, r.ms.mad, r.ms_mean);
  text += fmt::format(
      "{} Gaussians, {:.0f} visible ({:.1f} %), {:.0f} instances ({} in the first pass, {} in the "
      "last)\n",
      r.n_gaussians, r.visible, 100 * r.visible / static_cast<double>(r.n_gaussians), r.instances,
      r.first_instances, r.last_instances);
  if (r.n_sampled > 0) {
    text += fmt::format(
        "processed share {:.1f} % of the instances, {:.0f} (Gaussian, pixel) pairs walked per "
        "frame, {:.0f} of them blended ({} frames)\n",
        100 * r.processed_share, r.walked_pairs, r.blended_pairs, r.n_sampled);
  }
  text += fmt::format(
      "device busy {:.1f} %, {:.1f} launches, {:.3f} waits and {:.3f} pacing per step, {} replays, "
      "device peak {:.1f} MiB ({} Gaussians, room for {} instances, {} pixels, {:.1f} MiB of "
      "photographs)\n\n",
      r.device_busy_percent, r.launches_per_step, r.waits_per_step, r.pacing_per_step, r.replays,
      static_cast<double>(r.peak_device_bytes) / (1 << 20), r.n_gaussians, r.instance_capacity,
      r.n_pixels, static_cast<double>(r.photograph_bytes) / (1 << 20));
  const bool timed = !r.kernels.empty(), copied = r.copy_bytes_per_second > 0;
  text += fmt::format("{:<24} {:>12} {:<18} {:>10} {:>8} {:>10} {:>10} {:>8} {:>8}\n", "stage",
                      "count", "", "MiB", "GFLOP", "floor ms", "ms", "GB/s", "GFLOP/s");
  const auto cell = [](bool known, double value, int digits) {
    return known ? fmt::format("{:.{}f}", value, digits) : "-";
  };
  for (const StageCount& stage : r.stages) {
    const bool has_rate = timed && stage.ms > 0;
    text += fmt::format("{:<24} {:>12.0f} {:<18} {:>10.1f} {:>8.3f} {:>10} {:>10} {:>8} {:>8}\n",
                        stage.stage, stage.count, stage.unit, stage.bytes / (1 << 20),
                        1e-9 * stage.operations, cell(copied, stage.floor_ms, 3),
                        cell(timed, stage.ms, 3), cell(has_rate, 1e-6 * stage.bytes / stage.ms, 1),
                        cell(has_rate, 1e-6 * stage.operations / stage.ms, 1));
  }
  if (copied) {
    text += fmt::format(
        "floor: {:.3f} ms; this device copies {:.1f} GB/s, computes {:.1f} GFLOP/s, and takes "
        "{:.4f} "
        "ms for each of {:.1f} launches\n",
        r.floor_ms, r.copy_bytes_per_second * 1e-9, r.operations_per_second * 1e-9, r.launch_ms,
        r.launches_per_step);
  }
  for (const KernelTime& kernel : r.kernels) {
    text += fmt::format("  {:<28} {:>6.1f} launches {:>9.4f} ms\n", kernel.name, kernel.launches,
                        kernel.ms);
  }
  return text;
}

ordered_json to_json(const SteadyReport& r) {
  ordered_json stages = ordered_json::array();
  for (const StageCount& stage : r.stages) {
    stages.push_back({{"stage", stage.stage},
                      {"unit", stage.unit},
                      {"count", number(stage.count)},
                      {"bytes", number(stage.bytes)},
                      {"operations", number(stage.operations)},
                      {"floor_ms", number(stage.floor_ms)},
                      {"ms", r.kernels.empty() ? ordered_json(nullptr) : number(stage.ms)}});
  }
  ordered_json kernels = ordered_json::array();
  for (const KernelTime& kernel : r.kernels) {
    kernels.push_back({{"kernel", kernel.name},
                       {"launches", number(kernel.launches)},
                       {"ms", number(kernel.ms)}});
  }
  return {{"schema", 1},
          {"steady", true},
          {"dataset", r.dataset},
          {"model", r.model},
          {"device", r.device},
          {"gaussians", r.n_gaussians},
          {"gaussians_in_file", r.n_in_file},
          {"views", r.n_views},
          {"steps", r.n_steps},
          {"interrupted", r.interrupted},
          {"ms_per_step",
           {{"median", number(r.ms.median)},
            {"min", number(r.ms.min)},
            {"max", number(r.ms.max)},
            {"mad", number(r.ms.mad)},
            {"mean", number(r.ms_mean)}}},
          {"visible", number(r.visible)},
          {"instances",
           {{"mean", number(r.instances)},
            {"first_pass", r.first_instances},
            {"last_pass", r.last_instances}}},
          {"processed_share", r.n_sampled ? number(r.processed_share) : ordered_json(nullptr)},
          {"pairs_walked", r.n_sampled ? number(r.walked_pairs) : ordered_json(nullptr)},
          {"pairs_blended", r.n_sampled ? number(r.blended_pairs) : ordered_json(nullptr)},
          {"frames_sampled", r.n_sampled},
          {"device_busy_percent", number(r.device_busy_percent)},
          {"launches_per_step", number(r.launches_per_step)},
          {"waits_per_step", number(r.waits_per_step)},
          {"pacing_per_step", number(r.pacing_per_step)},
          {"replays", r.replays},
          {"peak_device_bytes", r.peak_device_bytes},
          {"instance_capacity", r.instance_capacity},
          {"pixels", r.n_pixels},
          {"photograph_bytes", r.photograph_bytes},
          {"stages", stages},
          {"kernels", kernels},
          {"copy_bytes_per_second", number(r.copy_bytes_per_second)},
          {"operations_per_second", number(r.operations_per_second)},
          {"launch_ms", number(r.launch_ms)},
          {"floor_ms", number(r.floor_ms)}};
}

}  // namespace millrace
