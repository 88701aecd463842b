// The output folder of a run: names, the promise never to overwrite silently, and the report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "train/memory_plan.h"
#include "train/run_meter.h"
#include "train/step_windows.h"
#include "train/trainer.h"

namespace millrace {

/// Paths of a run's files below its folder (CONTRACTS.md, "millrace files").
struct OutputFolder {
  std::filesystem::path root;
  bool replaces_earlier = false;  // --overwrite on a folder that holds an earlier run
  std::filesystem::path ply(uint32_t iteration) const;
  std::filesystem::path stats(uint32_t iteration) const;
  std::filesystem::path render(const std::string& view_name) const;
  std::filesystem::path report() const { return root / "report.json"; }
  std::filesystem::path config() const { return root / "config.json"; }
  std::filesystem::path cameras() const { return root / "cameras.json"; }
  std::filesystem::path exposures() const { return root / "exposures.json"; }
  std::filesystem::path contact_sheet() const { return root / "contact_sheet.png"; }
};

/// Makes the folder and proves that it can be written. Errors: Usage if it holds an earlier run and
/// `overwrite` is off; Output if it cannot be made or written.
Result<OutputFolder> open_output_folder(const std::string& output, const std::string& dataset,
                                        bool overwrite);

/// Removes the earlier run that `folder` replaces; call when the new one has something to put in
/// its place.
void remove_earlier_run(OutputFolder& folder);

/// stats/val_step%04d.json: psnr, ssim, num_GS, time, and the colour-corrected figures.
Result<void> write_stats(const OutputFolder& folder, const EvalResult& result);

/// What report.json holds beside the summary.
struct RunReport {
  std::string dataset;
  std::string device_id, device_name, device_driver;
  RunMeter::StepMs ms;
  double device_dry_fraction = 0;
  double mean_queued_steps = 0;
  bool has_psnr = false;
  double psnr_cc = 0, psnr_gain = 0;
  double instances_mean = 0;
  uint64_t instances_max = 0;
  uint32_t most_bands = 1;  // that a frame was drawn in
  uint64_t skipped_rows = 0;
  uint64_t host_peak_bytes = 0;
  MemoryStats memory;
  MemoryPlan plan;
  double steady_waits_per_step = 0, pacing_per_step = 0;
  std::vector<WaitRecord> waits;
  double loss = 0;  // mean of the last steps; NaN if there was none
  std::vector<StepWindow> windows;
};
Result<void> write_report(const OutputFolder& folder, const TrainSummary& summary,
                          const RunReport& run);

}  // namespace millrace
