// Setting up a model for steady steps, running them, and counting what they worked on.
#include "bench/steady.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

#include "bench/pair_count.h"
#include "device/trace.h"
#include "io/ply.h"
#include "tensor/ops.h"
#include "train/open_device.h"
#include "train/photographs.h"
#include "train/runner.h"
#include "train/scene.h"
#include "train/strategy_options.h"
#include "train/train_memory.h"

namespace millrace {
namespace {

using std::chrono::steady_clock;

constexpr uint32_t kSampledFrames = 8;
constexpr uint32_t kTilePixels = kTileSize * kTileSize;
constexpr uint64_t kCopyBytes = 256u << 20;
constexpr int kSamples = 5, kCopiesPerSample = 4;
constexpr uint32_t kTimedSteps = 20;
constexpr int64_t kArithmeticElements = 1 << 22;
constexpr uint32_t kArithmeticRounds = 4096;      // some milliseconds of a GPU
constexpr uint32_t kArithmeticRoundsOnCpu = 512;  // some milliseconds of a CPU
constexpr int kEmptyLaunches = 200;

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

/// Options of the runner: nothing but steps, at the full SH degree from the first ones on.
TrainOptions steady_settings(const SteadyOptions& options, int sh_degree) {
  TrainOptions settings = options.train;
  settings.sh_degree = static_cast<uint32_t>(sh_degree);
  settings.sh_degree_interval = 1;
  settings.start_refine = settings.stop_refine = 0;
  settings.morton_interval = 0;
  settings.noise_lr = 0;
  settings.max_cap = std::max(settings.max_cap, options.n_gaussians);
  return settings;
}

/// All that steady steps need, in the order of its making.
class SteadyRun {
 public:
  SteadyRun(const SteadyOptions& options, const std::function<void(const std::string&)>& tell,
            const std::atomic<bool>& stop)
      : options_(options), tell_(tell), stop_(stop) {}

  Result<SteadyReport> run_blocking();

 private:
  Result<void> load_blocking();
  Result<void> measure_blocking();
  Result<void> time_kernels_blocking();
  Result<void> sample_frames_blocking();
  Result<void> sample_frame_blocking(FrameSize size);
  Result<void> measure_device_blocking();
  /// Seconds that the device takes for what `record` queues; the median of a few.
  template <class Record>
  Result<double> time_blocking(Record&& record);
  void say(const std::string& line) const {
    if (tell_) tell_(line);
  }

  const SteadyOptions& options_;
  const std::function<void(const std::string&)>& tell_;
  const std::atomic<bool>& stop_;
  TrainOptions settings_;
  TraceRecorder trace_;  // outlives the device
  std::unique_ptr<Device> device_;
  SceneScale scale_;
  std::vector<View> views_;
  std::vector<FrameSize> sizes_;
  TrainState state_;
  std::unique_ptr<Photographs> photographs_;
  std::unique_ptr<Runner> runner_;
  double walked_ = 0, listed_ = 0;  // instances, over the sampled frames
  SteadyReport report_;
};

Result<void> SteadyRun::load_blocking() {
  MILLRACE_ASSIGN(GaussianCloud cloud, read_gaussian_ply(options_.model));
  report_.n_in_file = cloud.count();
  if (cloud.count() == 0) {
    return Error{ErrorCode::Dataset, fmt::format("{} holds no Gaussians", options_.model)};
  }
  const int sh_degree = std::min(cloud.sh_degree, static_cast<int>(options_.train.sh_degree));
  settings_ = resolved_options(steady_settings(options_, sh_degree));
  settings_.mip_filter = settings_.mip_filter || cloud.mip_filter;
  MILLRACE_ASSIGN(device_, open_training_device(settings_.device, settings_.threads));
  report_.device = device_->info().id + ": " + device_->info().name;
  MILLRACE_ASSIGN(const Dataset dataset,
                  load_dataset(settings_.dataset, dataset_options(settings_)));
  scale_ = scene_scale(dataset);
  std::vector<CameraRecord> cameras;
  for (const View& view : dataset.views) {
    if (view.held_out) continue;
    views_.push_back(view);
    cameras.push_back(make_camera_record(view.camera, kNearPlane * scale_.normaliser));
    sizes_.push_back(frame_size(view.camera));
  }
  if (views_.empty()) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{}: every usable image is held out", settings_.dataset)};
  }
  cloud = repeated(cloud, options_.n_gaussians);
  state_.model = make_model(*device_, cloud, sh_degree, cloud.count());
  prepare_strategy(state_.model, settings_, cloud.count());
  state_.cameras = make_camera_table(*device_, cameras);
  state_.workspace.rows = make_row_buffers(*device_, state_.model.row_capacity);
  state_.workspace.pixels = make_pixel_buffers(*device_, sizes_, pixel_needs(settings_));
  state_.workspace.instances =
      make_instance_buffers(*device_, std::max<uint64_t>(1u << 20, 4 * cloud.count()),
                            state_.workspace.pixels.n_tiles, /*with_gradients=*/true);
  begin_strategy(state_, views_, scale_);
  ImageLoaderOptions loader;
  loader.background = settings_.bg_color;
  photographs_ =
      std::make_unique<Photographs>(*device_, views_, loader, settings_.image_cache_bytes,
                                    Photographs::kMostAhead, pixel_needs(settings_).structure);
  runner_ = std::make_unique<Runner>(*device_, settings_, scale_, state_, *photographs_, sizes_);
  std::vector<uint32_t> all(views_.size());
  std::iota(all.begin(), all.end(), 0u);
  return photographs_->preload_blocking(all, {}, &stop_);
}

Result<void> SteadyRun::measure_blocking() {
  const uint32_t end = options_.n_warm_up + options_.n_steps;
  // Room made while measuring is not the step's time: warm-up sees every view where it can.
  MILLRACE_TRY(runner_->run_until_blocking(options_.n_warm_up, stop_, nullptr));
  MILLRACE_TRY(runner_->settle_blocking(nullptr));

  std::vector<double> intervals, instances;
  intervals.reserve(options_.n_steps);
  instances.reserve(options_.n_steps);
  double visible = 0;
  bool has_last = false;
  steady_clock::time_point last;
  const auto accepted = [&](const StepMetrics& metrics) {
    const auto now = steady_clock::now();
    // The first steps after settling find an empty queue, which is not steady.
    if (has_last && instances.size() >= kRunAhead) {
      intervals.push_back(std::chrono::duration<double, std::milli>(now - last).count());
    }
    last = now;
    has_last = true;
    visible += metrics.visible;
    instances.push_back(static_cast<double>(metrics.instances));
  };
  const QueueStats queue = device_->queue();
  const uint64_t waits = device_->ledger().count_except_pacing();
  const uint64_t pacing = device_->ledger().count(WaitReason::Pacing);
  const auto begin = steady_clock::now();
  MILLRACE_TRY(runner_->run_until_blocking(end, stop_, accepted));
  const uint64_t waits_after = device_->ledger().count_except_pacing();
  const uint64_t pacing_after = device_->ledger().count(WaitReason::Pacing);
  const std::vector<double> while_queued = intervals;
  MILLRACE_TRY(runner_->settle_blocking(accepted));
  const double seconds = seconds_since(begin);
  const QueueStats queue_after = device_->queue();

  const auto n = static_cast<double>(std::max<size_t>(instances.size(), 1));
  report_.interrupted = stop_.load();
  report_.n_steps = static_cast<uint32_t>(instances.size());
  // Settling hands over the last steps at once: no time lies between them.
  report_.ms = spread_of(while_queued);
  report_.ms_mean = 1000 * seconds / n;
  report_.visible = visible / n;
  report_.instances = std::accumulate(instances.begin(), instances.end(), 0.0) / n;
  const auto pass = static_cast<long>(std::min(instances.size(), views_.size()));
  const auto mean_of = [&](auto first) {
    const double sum = std::accumulate(first, first + pass, 0.0);
    return static_cast<uint64_t>(sum / static_cast<double>(std::max(pass, 1l)));
  };
  report_.first_instances = mean_of(instances.begin());
  report_.last_instances = mean_of(instances.end() - pass);
  report_.launches_per_step = static_cast<double>(queue_after.launches - queue.launches) / n;
  report_.device_busy_percent =
      100 * static_cast<double>(queue_after.busy_ns - queue.busy_ns) * 1e-9 / seconds;
  report_.waits_per_step = static_cast<double>(waits_after - waits) / n;
  report_.pacing_per_step = static_cast<double>(pacing_after - pacing) / n;
  report_.replays = runner_->replays();
  report_.peak_device_bytes = device_->memory().peak_reserved_bytes;
  report_.instance_capacity = state_.workspace.instances.capacity;
  report_.n_pixels = state_.workspace.pixels.n_pixels;
  report_.photograph_bytes = photographs_->total_bytes();
  return {};
}

// The kernels' times, from steps that are timed apart: timing events cost time themselves.
Result<void> SteadyRun::time_kernels_blocking() {
  device_->set_trace(&trace_);
  const uint32_t end = runner_->next_step() + kTimedSteps;
  MILLRACE_TRY(runner_->run_until_blocking(end, stop_, nullptr));
  MILLRACE_TRY(runner_->settle_blocking(nullptr));
  device_->set_trace(nullptr);
  report_.n_timed = kTimedSteps;
  return {};
}

// How far each pixel walked its tile's list lies in the frame's buffers, until the next frame.
Result<void> SteadyRun::sample_frame_blocking(FrameSize size) {
  const uint64_t n_tiles = uint64_t{tiles_across(size.width)} * tiles_across(size.height);
  const Workspace& workspace = state_.workspace;
  const Ticket last = read_later(workspace.pixels.last);
  const Ticket ranges = read_later(workspace.pixels.tile_ranges);
  const Ticket projected = read_later(workspace.rows.projected);
  const Ticket rows = read_later(workspace.instances.row);
  const Ticket slots = read_later(workspace.instances.sorted_slots);
  MILLRACE_TRY(device_->wait_blocking(device_->submit(), {WaitReason::UserRead, "bench.counts"}));
  const auto words = [](const Ticket& ticket) {
    return reinterpret_cast<const uint32_t*>(ticket.bytes().data());
  };
  const PairCount pairs =
      count_pairs({reinterpret_cast<const Projected*>(projected.bytes().data()), words(rows),
                   words(slots), words(ranges), words(last), size.width, size.height});
  report_.walked_pairs += static_cast<double>(pairs.walked);
  report_.blended_pairs += static_cast<double>(pairs.blended);
  const uint32_t* walked = words(last);
  const uint32_t* range = words(ranges);
  for (uint64_t tile = 0; tile < n_tiles; ++tile) {
    uint32_t furthest = 0;
    for (uint32_t i = 0; i < kTilePixels; ++i) {
      furthest = std::max(furthest, walked[tile * kTilePixels + i]);
    }
    walked_ += furthest;
    listed_ += range[2 * tile + 1] - range[2 * tile];
  }
  return {};
}

Result<void> SteadyRun::sample_frames_blocking() {
  FrameSize size;
  ViewSampler sampler(settings_.seed, static_cast<uint32_t>(views_.size()));
  const uint32_t n = std::min<uint32_t>(kSampledFrames, static_cast<uint32_t>(views_.size()));
  for (uint32_t i = 0; i < n && !stop_.load(); ++i) {
    const uint32_t step = runner_->next_step();
    size = sizes_[sampler.view_of(step)];
    MILLRACE_TRY(runner_->run_until_blocking(step + 1, stop_, nullptr));
    MILLRACE_TRY(runner_->settle_blocking(nullptr));
    MILLRACE_TRY(sample_frame_blocking(size));
    ++report_.n_sampled;
  }
  if (report_.n_sampled > 0) {
    report_.walked_pairs /= report_.n_sampled;
    report_.blended_pairs /= report_.n_sampled;
  }
  report_.processed_share = listed_ > 0 ? walked_ / listed_ : 0;
  return {};
}

template <class Record>
Result<double> SteadyRun::time_blocking(Record&& record) {
  std::vector<double> seconds;
  for (int i = 0; i < kSamples; ++i) {
    MILLRACE_TRY(device_->wait_blocking(device_->submit(), {WaitReason::UserRead, "bench.device"}));
    const auto begin = steady_clock::now();
    MILLRACE_TRY(record());
    MILLRACE_TRY(device_->wait_blocking(device_->submit(), {WaitReason::UserRead, "bench.device"}));
    seconds.push_back(std::max(seconds_since(begin), 1e-9));
  }
  return median(seconds);
}

// What this device does at best, in this run.
Result<void> SteadyRun::measure_device_blocking() {
  const Shape shape{kCopyBytes / 4};
  const Tensor from = Tensor::zeros(*device_, shape, Dtype::F32, "bench");
  const Tensor to = Tensor::zeros(*device_, shape, Dtype::F32, "bench");
  MILLRACE_ASSIGN(const double copying, time_blocking([&]() -> Result<void> {
                    for (int k = 0; k < kCopiesPerSample; ++k) {
                      MILLRACE_TRY(device_->copy(to.slice(), from.slice()));
                    }
                    return {};
                  }));
  report_.copy_bytes_per_second = 2.0 * kCopyBytes * kCopiesPerSample / copying;

  const uint32_t rounds = device_->info().threads > 0 || device_->info().software
                              ? kArithmeticRoundsOnCpu
                              : kArithmeticRounds;
  MILLRACE_ASSIGN(const double computing, time_blocking([&]() -> Result<void> {
                    iterate_affine(*device_, kArithmeticElements, rounds, 0.5f, 1);
                    return {};
                  }));
  report_.operations_per_second = 2.0 * kArithmeticElements * rounds / computing;

  MILLRACE_ASSIGN(const double launching, time_blocking([&]() -> Result<void> {
                    for (int k = 0; k < kEmptyLaunches; ++k) {
                      reopen_gate(state_.model, runner_->epoch());
                    }
                    return {};
                  }));
  report_.launch_ms = 1000 * launching / kEmptyLaunches;
  return {};
}

Result<SteadyReport> SteadyRun::run_blocking() {
  report_.dataset = settings_.dataset = options_.train.dataset;
  report_.model = options_.model;
  report_.n_gaussians = options_.n_gaussians;
  MILLRACE_TRY(load_blocking());
  report_.n_views = static_cast<uint32_t>(views_.size());
  say(fmt::format("{} Gaussians from {} in {}, {} training views, {}", options_.n_gaussians,
                  report_.n_in_file, options_.model, report_.n_views, report_.device));
  MILLRACE_TRY(measure_blocking());
  if (!report_.interrupted) {
    MILLRACE_TRY(time_kernels_blocking());
    MILLRACE_TRY(sample_frames_blocking());
    MILLRACE_TRY(measure_device_blocking());
  }
  double n_pixels = 0;
  for (const FrameSize& size : sizes_) n_pixels += double{1} * size.width * size.height;
  report_.stages = stage_counts(report_, state_.model.max_sh_degree,
                                n_pixels / static_cast<double>(sizes_.size()));
  std::vector<KernelTime> kernels;
  for (const TraceRecorder::DeviceTotal& total : trace_.device_totals()) {
    kernels.push_back({total.name, static_cast<double>(total.count) / report_.n_timed,
                       1e-6 * static_cast<double>(total.ns) / report_.n_timed});
  }
  add_kernel_times(report_, std::move(kernels));
  add_floors(report_);
  return report_;
}

}  // namespace

Result<SteadyReport> run_steady_blocking(const SteadyOptions& options,
                                         const std::function<void(const std::string&)>& tell,
                                         const std::atomic<bool>& stop) {
  return SteadyRun(options, tell, stop).run_blocking();
}

}  // namespace millrace
