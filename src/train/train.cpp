// A training run from beginning to end: load, train, evaluate, save, report.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "base/file.h"
#include "device/trace.h"
#include "io/cameras_json.h"
#include "train/appearance_setup.h"
#include "train/mask_settings.h"
#include "train/memory_plan.h"
#include "train/model_export.h"
#include "train/open_device.h"
#include "train/output.h"
#include "train/output_plan.h"
#include "train/publisher.h"
#include "train/recent_psnr.h"
#include "train/run_meter.h"
#include "train/runner.h"
#include "train/scene.h"
#include "train/start_instances.h"
#include "train/state_hash.h"
#include "train/step_windows.h"
#include "train/strategy_options.h"
#include "train/train_memory.h"
#include "train/trainer.h"

namespace millrace {
namespace {

/// Everything of one run.
class Run final : private RunSink {
 public:
  Run(const TrainOptions& given, const TrainOptions& checked, const TrainObserver& observer,
      const std::atomic<bool>& stop)
      : given_(given), options_(checked), observer_(observer), stop_(stop) {}

  Result<TrainSummary> run_blocking() {
    if (options_.trace.empty()) return run_untraced_blocking();
    MILLRACE_TRY(check_trace_path(options_.trace));
    trace_ = std::make_unique<TraceRecorder>();
    Result<TrainSummary> ran = run_untraced_blocking();
    // A run that failed leaves its trace too.
    const Result<void> written = save_trace();
    if (!written.ok() && ran.ok()) return written.error();
    if (!written.ok()) warn(written.error().message);
    return ran;
  }

 private:
  Result<TrainSummary> run_untraced_blocking() {
    MILLRACE_TRY(load_blocking());
    MILLRACE_TRY(train_blocking());
    MILLRACE_TRY(finish_blocking());
    return summary_;
  }
  Result<void> save_trace();
  Result<void> load_blocking();
  Result<void> open_dataset();
  Result<void> plan_run_blocking();
  Result<void> allocate();
  Result<void> preload_blocking();
  Result<void> train_blocking();
  Result<void> finish_blocking();
  Result<void> export_blocking();
  Result<void> save_now_blocking();
  void rescue_model_blocking();

  // RunSink: nothing of this counts as a step's time.
  Result<void> make_room_blocking() override {
    const bool waits = !publisher_->has_room();
    MILLRACE_TRY(publisher_->make_room_blocking());
    if (waits) leave_out();
    return {};
  }
  Result<void> make_snapshot_room_blocking() override {
    const bool waits = !publisher_->has_snapshot_room();
    MILLRACE_TRY(publisher_->make_snapshot_room_blocking());
    if (waits) leave_out();
    return {};
  }
  void paused() override { leave_out(); }
  void refined(uint32_t step, const Counts& counts) override;
  Result<void> deliver() override { return publisher_->deliver(); }
  void rendered(const RenderedView& view) override {
    leave_out();
    publisher_->rendered(view);
  }
  void snapshot(uint32_t steps, ModelSnapshot snapshot) override {
    leave_out();
    saved_step_ = steps;
    publisher_->snapshot(steps, std::move(snapshot));
  }

  void leave_out() {
    meter_->leave_out();
    windows_->leave_out();
  }
  void on_step(const StepMetrics& metrics);
  void say_saved(const std::filesystem::path& path) {
    if (observer_.saved) observer_.saved(std::filesystem::absolute(path));
  }
  void note(const std::string& text) {
    if (observer_.note) observer_.note(text);
  }
  void warn(const std::string& text) {
    if (observer_.warning) observer_.warning(text);
  }

  const TrainOptions given_;  // as asked for: what config.json holds
  TrainOptions
      options_;  // checked, with step counts scaled; from plan_run_blocking() on, as planned
  const TrainObserver& observer_;
  const std::atomic<bool>& stop_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();

  std::unique_ptr<TraceRecorder> trace_;  // outlives what records; null without --trace
  std::unique_ptr<Device> device_;
  Dataset dataset_;
  SceneScale scale_;
  std::vector<float> start_distances_;  // of the points, until the model is made
  uint64_t start_instances_ = 0;
  OutputFolder folder_;
  std::vector<View> train_views_, test_views_;
  std::vector<FrameSize> sizes_, eval_sizes_;
  MemoryPlan plan_;
  EditLog edits_;
  std::unique_ptr<Photographs> photographs_;
  std::unique_ptr<TrainState> state_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<RunMeter> meter_;
  std::unique_ptr<StepWindows> windows_;
  RecentPsnr recent_psnr_;
  uint32_t last_step_ = 0;   // at which the run ends
  int64_t saved_step_ = -1;  // of the last snapshot
  TrainSummary summary_;
};

Result<void> Run::save_trace() {
  MILLRACE_TRY(write_trace(*trace_, options_.trace));
  if (trace_->dropped() > 0) {
    warn(fmt::format("the trace is full: its last {} events are missing; trace fewer steps (-i)",
                     trace_->dropped()));
  }
  say_saved(options_.trace);
  return {};
}

Result<void> Run::load_blocking() {
  MILLRACE_ASSIGN(edits_, EditLog::of_settings(options_));
  last_step_ = options_.iterations;
  for (const Edit& edit : edits_.edits()) {
    if (edit.stop) last_step_ = std::min(last_step_, edit.step);
  }
  const TraceSpan span(trace_.get(), TraceTrack::Phases, "load");
  MILLRACE_TRY(open_dataset());
  MILLRACE_TRY(plan_run_blocking());
  MILLRACE_TRY(allocate());
  MILLRACE_TRY(preload_blocking());
  // The capture has proved usable: from here on an earlier run in the folder gives way.
  remove_earlier_run(folder_);
  MILLRACE_TRY(write_file_atomically(folder_.config(), options_to_json(given_) + "\n"));
  std::vector<NamedCamera> named;
  for (const View& view : dataset_.views) named.push_back({view.name, view.camera});
  return write_cameras_json(folder_.cameras(), named);
}

Result<void> Run::open_dataset() {
  MILLRACE_ASSIGN(folder_,
                  open_output_folder(options_.output, options_.dataset, options_.overwrite));
  MILLRACE_ASSIGN(device_, open_training_device(options_.device, options_.threads));
  device_->set_trace(trace_.get());
  MILLRACE_ASSIGN(dataset_, load_dataset(options_.dataset, dataset_options(options_)));
  for (const View& v : dataset_.views) (v.held_out ? test_views_ : train_views_).push_back(v);
  if (train_views_.empty()) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: every usable image is held out; lower --test-every or set it to 0",
                    options_.dataset)};
  }
  if (observer_.loaded) observer_.loaded(dataset_, device_->info());
  for (const std::string& text : dataset_.notes) note(text);
  for (const std::string& text : dataset_.warnings) warn(text);
  scale_ = scene_scale(dataset_);
  const std::string filled = add_fill_points(dataset_, options_);
  if (!filled.empty()) note(filled);
  return {};
}

// Before anything large is allocated: what the run will take, and what it must do without.
Result<void> Run::plan_run_blocking() {
  start_distances_ = initial_distances(dataset_, options_);
  MILLRACE_ASSIGN(start_instances_,
                  start_instances_blocking(dataset_, options_, scale_, start_distances_));
  const Schedule schedule(options_, scale_, &edits_);
  const OutputPlan outputs = planned_outputs(options_, edits_, last_step_);
  PlanInputs inputs = {.options = options_,
                       .schedule = schedule,
                       .train_views = train_views_,
                       .eval_views = test_views_,
                       .n_points = dataset_.points.count(),
                       .start_instances = start_instances_,
                       .saves = outputs.saves,
                       .evals = outputs.evals};
  set_machine(&inputs, *device_);
  MILLRACE_ASSIGN(plan_, plan_memory(inputs));
  options_.max_cap = std::min(options_.max_cap, plan_.max_cap);
  edits_.limit_max_cap(plan_.max_cap);
  options_.image_cache_bytes = plan_.image_cache_bytes;
  options_.instance_budget = plan_.instance_budget;
  device_->limit_memory(plan_.device_limit_bytes);
  if (observer_.planned) observer_.planned(plan_);
  return {};
}

Result<void> Run::allocate() {
  state_ = std::make_unique<TrainState>();
  uint64_t n_rows = 0;
  {
    std::string cloud_note;
    const GaussianCloud cloud = initial_cloud(dataset_, options_, &cloud_note, start_distances_);
    if (!cloud_note.empty()) note(cloud_note);
    const uint64_t rows = std::max(plan_.row_capacity, cloud.count());
    state_->model = make_model(*device_, cloud, static_cast<int>(options_.sh_degree), rows);
    n_rows = cloud.count();
    prepare_strategy(state_->model, options_, n_rows);
  }
  dataset_.points = PointCloud();
  start_distances_ = {};
  std::vector<CameraRecord> cameras;
  std::vector<FrameSize> all_sizes;
  for (const std::vector<View>* views : {&train_views_, &test_views_}) {
    for (const View& view : *views) {
      cameras.push_back(make_camera_record(view.camera, kNearPlane * scale_.normaliser));
      (views == &train_views_ ? sizes_ : eval_sizes_).push_back(frame_size(view.camera));
      all_sizes.push_back(frame_size(view.camera));
    }
  }
  state_->cameras = make_camera_table(*device_, cameras);
  make_working_memory(*state_, all_sizes,
                      first_instance_capacity(n_rows, start_instances_, options_),
                      pixel_needs(options_));
  begin_strategy(*state_, train_views_, scale_);
  if (!options_.bg_image.empty()) {
    MILLRACE_ASSIGN(state_->background,
                    BackgroundImages::load(*device_, options_.bg_image, all_sizes));
  }
  AppearanceSetup appearance = appearance_setup(options_, train_views_);
  const std::string seeded =
      options_.exif_exposure ? seed_exposures(train_views_, &appearance) : "";
  if (!seeded.empty()) note(seeded);
  state_->appearance = Appearance(*device_, appearance, all_sizes);
  return {};
}

Result<void> Run::preload_blocking() {
  ImageLoaderOptions loader;
  loader.background = options_.bg_color;
  loader.artificial_delay_ms = options_.test_decode_delay_ms;
  photographs_ =
      std::make_unique<Photographs>(*device_, train_views_, loader, options_.image_cache_bytes,
                                    plan_.n_ahead, pixel_needs(options_).structure);
  publisher_ =
      std::make_unique<Publisher>(Publisher::Setup{.folder = folder_,
                                                   .eval_views = test_views_,
                                                   .background = options_.bg_color,
                                                   .decode_delay_ms = options_.test_decode_delay_ms,
                                                   .last_step = last_step_,
                                                   .most_waiting_bytes = plan_.most_waiting_bytes,
                                                   .masks = mask_settings(options_),
                                                   .mip_filter = options_.mip_filter},
                                  *device_, observer_);
  runner_ =
      std::make_unique<Runner>(*device_, options_, scale_, *state_, *photographs_, sizes_, &edits_);
  runner_->plan_outputs(planned_outputs(options_, edits_, last_step_), eval_sizes_, this);
  meter_ = std::make_unique<RunMeter>(*device_, photographs_.get(), options_.iterations);
  windows_ = std::make_unique<StepWindows>(*device_, options_.iterations);

  ViewSampler sampler(options_.seed, static_cast<uint32_t>(sizes_.size()));
  std::vector<uint32_t> first_views;
  for (uint32_t step = 0; step < std::min<uint32_t>(32, options_.iterations); ++step) {
    const uint32_t view = sampler.view_of(step);
    const bool known = std::find(first_views.begin(), first_views.end(), view) != first_views.end();
    if (!known) first_views.push_back(view);
  }
  MILLRACE_TRY(photographs_->preload_blocking(first_views, observer_.images_loading, &stop_));
  if (photographs_->n_masks() > 0) {
    note(mask_note(options_, photographs_->mean_mask(), photographs_->n_masks()));
  }
  return {};
}

// How much MRNF's growth threshold tells apart: where nearly all rows are above it, it is none.
void Run::refined(uint32_t step, const Counts& counts) {
  if (!state_->model.statistics.defined()) return;
  const uint64_t before = uint64_t{counts.rows} - counts.free - counts.born;
  note(
      fmt::format("refinement after step {}: {:.1f} % of {} Gaussians are above the growth "
                  "threshold; {} were removed, {} split",
                  step, before > 0 ? 100.0 * counts.candidates / static_cast<double>(before) : 0.0,
                  before, counts.dead, counts.born));
}

void Run::on_step(const StepMetrics& metrics) {
  meter_->step(metrics.step);
  windows_->step(metrics);
  summary_.steps = metrics.step + 1;
  summary_.gaussians = metrics.rows;
  if (!observer_.step) return;
  StepProgress progress;
  progress.step = metrics.step;
  progress.iterations = options_.iterations;
  progress.loss = metrics.loss;
  progress.l1 = metrics.l1;
  progress.ssim = metrics.ssim;
  progress.train_psnr = recent_psnr_.with(metrics.mse);
  progress.gaussians = metrics.rows;
  progress.instances = metrics.instances;
  progress.steps_per_second = meter_->recent_steps_per_second();
  if (progress.steps_per_second > 0) {
    progress.eta_seconds = (options_.iterations - metrics.step - 1) / progress.steps_per_second;
  }
  observer_.step(progress);
}

Result<void> Run::train_blocking() {
  uint64_t replays = 0;
  const auto accepted = [&](const StepMetrics& metrics) {
    if (runner_->replays() != replays) {
      replays = runner_->replays();
      meter_->replayed();
    }
    on_step(metrics);
  };
  meter_->resume();
  windows_->resume();
  const Result<void> ran = runner_->run_until_blocking(last_step_, stop_, accepted);
  meter_->pause();
  windows_->pause();
  if (!ran.ok()) {
    if (ran.error().code != ErrorCode::Output) rescue_model_blocking();
    return ran.error();
  }
  MILLRACE_TRY(runner_->settle_blocking(accepted));
  summary_.interrupted = stop_.load();
  if (summary_.interrupted) MILLRACE_TRY(save_now_blocking());
  // What only training needs makes room for the rest.
  state_->workspace = Workspace();
  state_->refinement = McmcScratch();
  return publisher_->finish_blocking();
}

// The state as it is, unless it is saved already.
Result<void> Run::save_now_blocking() {
  if (saved_step_ == runner_->next_step()) return {};
  return runner_->snapshot_now_blocking();
}

// An error ends the run; what was trained until then is saved if the device still answers.
void Run::rescue_model_blocking() {
  Result<void> saved = runner_->settle_blocking(nullptr);
  if (saved.ok()) saved = save_now_blocking();
  if (saved.ok()) saved = publisher_->finish_blocking();
  if (!saved.ok()) warn("the model could not be saved: " + saved.error().message);
}

Result<void> Run::finish_blocking() {
  const TraceSpan span(trace_.get(), TraceTrack::Phases, "finish");
  if (!publisher_->contact_rows().empty()) {
    MILLRACE_TRY(write_contact_sheet(folder_.contact_sheet(), publisher_->contact_rows()));
    summary_.contact_sheet = folder_.contact_sheet();
    say_saved(summary_.contact_sheet);
  }
  MILLRACE_ASSIGN(summary_.state_sha256,
                  state_sha256_blocking(state_->model, {summary_.steps, options_.seed},
                                        state_->appearance.state()));
  if (state_->appearance.ppisp().is_on()) {
    MILLRACE_TRY(write_exposures_blocking(folder_.exposures(), train_views_, state_->appearance));
    say_saved(folder_.exposures());
  }
  const Ticket last = read_later(state_->model.control);
  MILLRACE_TRY(device_->wait_blocking(last.point(), {WaitReason::UserRead, "trainer.state"}));
  const auto control = last.as<Control>();

  const EvalResult& eval = publisher_->last_eval();
  RunReport report;
  report.dataset = options_.dataset;
  report.device_id = device_->info().id;
  report.device_name = device_->info().name;
  report.device_driver = device_->info().driver;
  report.ms = meter_->step_ms();
  report.device_dry_fraction = meter_->device_dry_fraction();
  report.mean_queued_steps = runner_->mean_queued_steps();
  report.has_psnr = eval.n_views > 0;
  report.psnr_cc = eval.psnr_cc;
  report.psnr_gain = eval.psnr_gain;
  report.instances_mean = runner_->mean_instances();
  report.instances_max = runner_->max_instances();
  report.most_bands = runner_->most_bands();
  report.skipped_rows = control.counts.skipped_rows;
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  report.host_peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  report.memory = device_->memory();
  report.plan = plan_;
  report.steady_waits_per_step = meter_->steady_waits_per_step();
  report.pacing_per_step = meter_->pacing_per_step();
  report.waits = device_->ledger().records();
  report.windows = windows_->windows();
  report.loss = windows_->recent_loss();

  summary_.output = folder_.root;
  summary_.report = folder_.report();
  summary_.gaussians = control.counts.rows - control.counts.free;
  summary_.replays = runner_->replays();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  summary_.psnr = report.has_psnr ? eval.psnr : nan;
  summary_.ssim = report.has_psnr ? eval.ssim : nan;
  summary_.ply = publisher_->ply();
  summary_.steps_per_second = meter_->steps_per_second();
  summary_.steady_waits_per_step = report.steady_waits_per_step;
  SlowFigures figures = meter_->figures();
  figures.queued_steps = report.mean_queued_steps;
  summary_.why_slow = why_slow(figures).line();
  summary_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  MILLRACE_TRY(write_report(folder_, summary_, report));
  say_saved(summary_.report);
  return options_.exports.empty() || summary_.ply.empty() ? Result<void>() : export_blocking();
}

// Beside the PLY, held against its views from the held-out cameras.
Result<void> Run::export_blocking() {
  const TraceSpan span(trace_.get(), TraceTrack::Phases, "export");
  MILLRACE_ASSIGN(auto formats, formats_of_names(options_.exports));
  std::erase(formats, ModelFormat::Ply);  // is there already
  MILLRACE_ASSIGN(const GaussianCloud cloud, read_model(summary_.ply));
  std::vector<NamedCamera> cameras;
  for (const View& view : test_views_.empty() ? train_views_ : test_views_) {
    cameras.push_back({view.name, view.camera});
  }
  ExportOptions options;
  MILLRACE_ASSIGN(const auto files,
                  export_cloud_blocking(*device_, cloud, cameras,
                                        summary_.ply.parent_path() / model_stem(summary_.ply),
                                        formats, options, observer_));
  for (const ExportedFile& file : files) note(export_text(file));
  return {};
}

}  // namespace

Result<TrainSummary> train(const TrainOptions& options, const TrainObserver& observer,
                           const std::atomic<bool>& stop) {
  MILLRACE_ASSIGN(const TrainOptions checked, checked_options(options));
  Run run(resolved_options(options), checked, observer, stop);
  return run.run_blocking();
}

}  // namespace millrace
