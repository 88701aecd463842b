// Training: from a dataset and options to a model, files and a report.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"
#include "device/device.h"
#include "formats/model_file.h"
#include "train/options.h"

namespace millrace {

struct MemoryPlan;  // memory_plan.h

/// What an accepted step reported; arrives some steps late and never costs a wait.
struct StepProgress {
  uint32_t step = 0;  // 0-based
  uint32_t iterations = 0;
  float loss = 0, l1 = 0, ssim = 0;
  double train_psnr = 0;  // running mean over recent steps, from the L1+SSIM pass's view (dB)
  uint64_t gaussians = 0;
  uint64_t instances = 0;
  double steps_per_second = 0;  // over the last second or so
  double eta_seconds = 0;
};

/// One evaluation on the held-out views.
struct EvalResult {
  uint32_t step = 0;  // steps done
  double psnr = 0, ssim = 0, psnr_cc = 0, psnr_gain = 0;
  uint64_t gaussians = 0;
  uint32_t n_views = 0;
  double seconds = 0;
  double frames_per_second = 0;  // of the rendering alone, of `millrace eval`; else 0
};

/// Called from the training thread; must not block for long. All optional.
struct TrainObserver {
  std::function<void(const Dataset&, const DeviceInfo&)> loaded;
  std::function<void(const MemoryPlan&)> planned;  // once, before anything large is allocated
  std::function<void(uint32_t done, uint32_t total)> images_loading;
  std::function<void(const StepProgress&)> step;
  std::function<void(const EvalResult&)> evaluated;
  std::function<void(const std::filesystem::path&)> saved;  // a file under its final name
  std::function<void(const std::string&)> note;
  std::function<void(const std::string&)> warning;
};

/// How a run ended. The same facts are in report.json.
struct TrainSummary {
  bool interrupted = false;
  uint32_t steps = 0;
  double psnr = 0, ssim = 0;  // of the last evaluation; NaN if nothing was held out
  uint64_t gaussians = 0;
  uint64_t replays = 0;
  double steps_per_second = 0, seconds = 0;
  double steady_waits_per_step = 0;
  std::string why_slow;
  std::string state_sha256;
  std::filesystem::path output, ply, contact_sheet, report;
};

/// Trains. `stop` may be set at any time (Ctrl-C): the run ends at the next step, saved like a
/// finished one. `command_line` goes into the report. Errors carry the documented codes; what was
/// saved stays.
Result<TrainSummary> train(const TrainOptions& options, const TrainObserver& observer,
                           const std::atomic<bool>& stop);

/// Checks ranges and combinations (Usage errors name the flag), applies steps_scaler.
Result<TrainOptions> checked_options(const TrainOptions& options);

/// The effective options as JSON text, and options from JSON over `base` (unknown keys are Usage
/// errors naming the key and near matches).
std::string options_to_json(const TrainOptions& options);
Result<TrainOptions> options_from_json(const std::string& text, const std::string& file_name,
                                       const TrainOptions& base);

/// Renders `ply` from the views of a dataset and scores it (`millrace eval`): writes renders/,
/// contact_sheet.png and stats/ below `output` if it is not empty.
struct EvalOptions {
  std::string dataset, model, output, device = "auto";
  bool overwrite = false, all_views = false;  // all_views: training views too
  TrainOptions data;                          // its dataset settings are used
};
Result<EvalResult> evaluate_model(const EvalOptions& options, const TrainObserver& observer);

/// Held-out PSNR of a capture's sparse points drawn as untrained Gaussians of opacity 0.9 and one
/// neighbour distance: how much a capture gives away before any training.
Result<double> evaluate_initial_points(const std::string& dataset, const std::string& device);

/// A file of a model that was read again and rendered against it (`millrace export`).
struct ExportedFile {
  std::filesystem::path path;
  std::string format;
  uint64_t bytes = 0, gaussians = 0;
  double mean_psnr = 0, least_psnr = 0;  // dB over the views; 100 = equal
};
struct ExportOptions {
  std::string model, output, cameras, device = "auto";  // cameras: a cameras.json, or empty
  std::vector<std::string> formats;
  bool overwrite = false;
  WriteOptions write;
};
/// Writes `model` in each format and proves each file (docs/formats.md, "Proven exports"). Errors:
/// Output if one is not near enough to the model; the others are there all the same.
Result<std::vector<ExportedFile>> export_model(const ExportOptions& options,
                                               const TrainObserver& observer);

/// Renders `ply` from cameras.json as PNG (`millrace render`); returns how many images were written
/// and the frames per second of the rendering alone.
struct RenderOptions {
  std::string model, cameras, output, device = "auto";
  std::array<float, 3> bg_color = {0, 0, 0};
  bool overwrite = false, depth = false, png16 = false;
};
struct RenderResult {
  uint32_t n_images = 0;
  double frames_per_second = 0;
};
Result<RenderResult> render_model(const RenderOptions& options, const TrainObserver& observer);

}  // namespace millrace
