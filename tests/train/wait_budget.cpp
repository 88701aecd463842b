// Reading, measuring and comparing wait budgets.
#include "train/wait_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "train/run_meter.h"
#include "train/runner_bench.h"
#include "train/strategy_options.h"

namespace millrace::test {
namespace {

// Half of this is for targets on the device: three of ten views.
constexpr uint64_t kSmallCache = uint64_t{6} * 3 * 64 * 48;

std::vector<WaitRecord> difference(const std::vector<WaitRecord>& before,
                                   std::vector<WaitRecord> after) {
  // Rows are only ever added at the end.
  for (size_t i = 0; i < before.size(); ++i) {
    after[i].count -= before[i].count;
    after[i].blocked_ns -= before[i].blocked_ns;
  }
  std::erase_if(after, [](const WaitRecord& row) {
    return row.count == 0 || row.reason == WaitReason::Pacing;
  });
  return after;
}

}  // namespace

std::vector<Preset> all_presets() {
  std::vector<Preset> presets;
  for (const char* strategy : kStrategies) {
    for (const char* background : kBackgroundModes) {
      for (const bool refinement : {true, false}) {
        for (const bool resident : {true, false}) {
          for (const bool sh_ramp : {true, false}) {
            presets.push_back({{"strategy", strategy},
                               {"exposure_correction", "off"},
                               {"masks", "none"},
                               {"crop_box", false},
                               {"viewer", false},
                               {"background", background},
                               {"refinement_due", refinement},
                               {"photographs_resident", resident},
                               {"sh_ramp", sh_ramp}});
          }
        }
      }
    }
  }
  // Exposure correction, structure and edges cost the same whatever the rest is.
  for (const bool resident : {true, false}) {
    presets.push_back(presets.front());
    presets.back()["photographs_resident"] = resident;
    presets.back()["loss"] = "structure";
  }
  for (const char* strategy : kStrategies) {
    for (const char* correction : {"ppisp", "grid", "combined"}) {
      presets.push_back(presets.front());
      presets.back()["strategy"] = strategy;
      presets.back()["exposure_correction"] = correction;
    }
  }
  for (const char* masks : {"ignore", "segment-and-ignore", "alpha-consistent"}) {
    presets.push_back(presets.front());
    presets.back()["masks"] = masks;
  }
  presets.push_back(presets.front());
  presets.back()["crop_box"] = true;
  return presets;
}

TrainOptions options_of(const Preset& preset) {
  TrainOptions options = tiny_options(1000);
  use_strategy(options, preset.at("strategy"));
  set_short_stages(options);
  options.exposure_correction = preset.at("exposure_correction");
  options.exposure_grid_start = 0;
  options.bg_mode = preset.at("background");
  if (options.bg_mode == "image") options.bg_image = tiny_dataset().views[0].image_path.string();
  options.mask_mode = preset.at("masks");
  if (preset.at("crop_box").get<bool>()) options.crop_box = "-1,-1,-1,1,1,1";
  if (preset.value("loss", "plain") == "structure") {
    options.thin_structure_weight = 0.5;
    options.gradient_loss_weight = 1.8;
    options.gradient_loss_start = 0;
  }
  if (!preset.at("refinement_due").get<bool>()) options.stop_refine = 0;
  if (!preset.at("photographs_resident").get<bool>()) options.image_cache_bytes = kSmallCache;
  if (!preset.at("sh_ramp").get<bool>()) options.sh_degree_interval = 0;
  return options;
}

Measured measure_blocking(const Preset& preset, const std::string& device, uint32_t end_step) {
  TrainOptions options = options_of(preset);
  options.device = device;
  options.threads = 0;  // as the device says
  RunnerBench bench(options);
  bench.keep_decoders_ahead();
  bench.runner->run_until_blocking(kFirstSteadyStep, bench.stop, {}).or_raise();
  const std::vector<WaitRecord> before = bench.device.ledger().records();
  bench.device.events.clear();
  bench.runner->run_until_blocking(end_step, bench.stop, {}).or_raise();

  Measured measured;
  measured.waits = difference(before, bench.device.ledger().records());
  const Schedule schedule(options, bench.scale);
  uint64_t transaction = transaction_id(kFirstSteadyStep, TransactionKind::Step);
  for (const QueueEvent& event : bench.device.events) {
    if (event.kind != QueueEvent::kSubmit || event.launches == 0) continue;
    const TransactionKind kind = kind_of(transaction);
    uint64_t& most = kind == TransactionKind::Step     ? measured.step
                     : kind == TransactionKind::Refine ? measured.refinement
                                                       : measured.reordering;
    most = std::max(most, event.launches);
    transaction = schedule.next(transaction);
  }
  return measured;
}

std::vector<Budget> read_budgets() {
  const std::string path = std::string(MILLRACE_SOURCE_DIR) + "/tests/waits/budget.json";
  const auto file = nlohmann::json::parse(read_text_file(path).or_raise());
  std::vector<Budget> budgets;
  for (const auto& row : file.at("budgets")) {
    const auto& launches = row.at("launches");
    budgets.push_back({row.at("preset"), row.at("waits"), launches.at("step"),
                       launches.at("refinement"), launches.at("reordering")});
  }
  return budgets;
}

std::vector<std::string> table_complaints(const std::vector<Preset>& presets,
                                          const std::vector<Budget>& budgets) {
  std::vector<std::string> complaints;
  for (const Preset& preset : presets) {
    const auto rows = std::count_if(budgets.begin(), budgets.end(),
                                    [&](const Budget& row) { return row.preset == preset; });
    if (rows == 1) continue;
    complaints.push_back(fmt::format("budget.json has {} rows for the preset {}; it must have one",
                                     rows, preset.dump()));
  }
  for (const Budget& row : budgets) {
    if (std::find(presets.begin(), presets.end(), row.preset) != presets.end()) continue;
    complaints.push_back(
        fmt::format("budget.json has a row that no preset uses: {}", row.preset.dump()));
  }
  return complaints;
}

std::vector<std::string> run_complaints(const Budget& budget, const Measured& measured) {
  std::vector<std::string> complaints;
  uint64_t n_waits = 0;
  for (const WaitRecord& row : measured.waits) n_waits += row.count;
  if (n_waits > budget.waits) {
    for (const WaitRecord& row : measured.waits) {
      complaints.push_back(fmt::format("{} waits at {} ({}) for {}; {} in all, budget {}",
                                       row.count, row.site, row.where, to_string(row.reason),
                                       n_waits, budget.waits));
    }
  }
  const auto compare = [&](const char* what, uint64_t allowed, uint64_t found) {
    if (found == allowed) return;
    complaints.push_back(fmt::format("{} launches in a {}, budget {}{}", found, what, allowed,
                                     found < allowed ? ": lower it, to keep what was won" : ""));
  };
  compare("step", budget.step, measured.step);
  compare("refinement", budget.refinement, measured.refinement);
  compare("reordering", budget.reordering, measured.reordering);
  return complaints;
}

}  // namespace millrace::test
