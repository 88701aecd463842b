// kernel_roofline: what each CPU kernel of a training step achieves on one fixed model, against the
// arithmetic peak and the memory speed measured in the same run.
//   kernel_roofline DATASET MODEL.ply [-r 2] [--threads 2] [--views 8] [--rounds 5] [--json]
// Under callgrind: --views 1 --rounds 1 (instructions per kernel; valgrind knows no AVX-512).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/pair_count.h"
#include "bench/statistics.h"
#include "cpu_peak.h"
#include "device/trace.h"
#include "io/ply.h"
#include "kernels/isa/hot.h"
#include "tensor/ops.h"
#include "train/open_device.h"
#include "train/photographs.h"
#include "train/scene.h"
#include "train/train_step.h"

namespace millrace::benchmarks {
namespace {

using std::chrono::steady_clock;

struct Settings {
  TrainOptions train;
  std::string model;
  uint32_t n_views = 8;
  int rounds = 5;
  bool json = false;
};

/// Counts of one frame.
struct Counts {
  PairCount pairs;
  double instances = 0, visible = 0, walked_instances = 0, pixels = 0;
};

/// A kernel's work in one frame.
struct Work {
  double flops = 0, bytes = 0;
};

/// Operations of the scalar reference, per row or pixel, counted in the sources of
/// src/kernels/isa/.
constexpr double kProjectOperations = 260, kShOperations = 140;      // a row; a row's 45 + 3 terms
constexpr double kLossForwardOperations = 5 * 2 * 21 + 5 + 45;       // a pixel and channel
constexpr double kLossBackwardOperations = 3 * 2 * 21 + 10;          // a pixel and channel
constexpr double kRowBackwardOperations = 260 + 420 + 3 * (45 * 2);  // a visible row
constexpr double kAdamOperations = 14;                               // a parameter

class Roofline {
 public:
  explicit Roofline(Settings settings) : settings_(std::move(settings)) {}
  void run_blocking();

 private:
  void load_blocking();
  void frame_blocking(uint32_t view, TraceRecorder* trace);
  Counts count_blocking(uint32_t view);
  std::map<std::string, Work> work_of(const Counts& counts) const;
  void print(const std::map<std::string, double>& ms, const Counts& counts, double peak_256,
             double peak_512) const;

  Settings settings_;
  std::unique_ptr<Device> device_;
  TrainState state_;
  std::vector<View> views_;
  std::vector<FrameSize> sizes_;
  std::unique_ptr<Photographs> photographs_;
  uint64_t n_rows_ = 0, transaction_ = 0;
  uint32_t sh_degree_ = 0;
};

void Roofline::load_blocking() {
  const GaussianCloud cloud = read_gaussian_ply(settings_.model).or_raise();
  n_rows_ = cloud.count();
  sh_degree_ = static_cast<uint32_t>(cloud.sh_degree);
  device_ = open_training_device("cpu", settings_.train.threads).or_raise();
  const Dataset dataset =
      load_dataset(settings_.train.dataset, dataset_options(settings_.train)).or_raise();
  const SceneScale scale = scene_scale(dataset);
  std::vector<CameraRecord> cameras;
  for (const View& view : dataset.views) {
    if (view.held_out || views_.size() == settings_.n_views) continue;
    views_.push_back(view);
    cameras.push_back(make_camera_record(view.camera, kNearPlane * scale.normaliser));
    sizes_.push_back(frame_size(view.camera));
  }
  state_.model = make_model(*device_, cloud, cloud.sh_degree, cloud.count());
  state_.cameras = make_camera_table(*device_, cameras);
  state_.workspace.rows = make_row_buffers(*device_, state_.model.row_capacity);
  state_.workspace.pixels = make_pixel_buffers(*device_, sizes_, true, false);
  state_.workspace.instances = make_instance_buffers(*device_, 16 * cloud.count(),
                                                     state_.workspace.pixels.n_tiles, true);
  ImageLoaderOptions loader;
  photographs_ = std::make_unique<Photographs>(*device_, views_, loader,
                                               settings_.train.image_cache_bytes);
  std::vector<uint32_t> all(views_.size());
  std::iota(all.begin(), all.end(), 0u);
  photographs_->preload_blocking(all, {}).or_raise();
}

// One step with rates of zero: all of its work, and the model stays what it is.
void Roofline::frame_blocking(uint32_t view, TraceRecorder* trace) {
  StepBlock block = {};
  block.transaction = transaction_++;
  block.view = view;
  block.sh_degree = sh_degree_;
  block.inv_sqrt_bias2 = 1;
  block.ssim_weight = 0.2f;
  block.max_rows = static_cast<uint32_t>(n_rows_);
  const StepInputs inputs = {upload_step_block(*device_, block),
                             photographs_->target_blocking(view).or_raise(), sizes_[view]};
  device_->set_trace(trace);
  train_step(state_, inputs);
  device_->wait_blocking(device_->submit(), {WaitReason::Test, "roofline"}).or_raise();
  device_->set_trace(nullptr);
}

Counts Roofline::count_blocking(uint32_t view) {
  const Workspace& w = state_.workspace;
  const Ticket control = read_later(state_.model.control), projected = read_later(w.rows.projected),
               rows = read_later(w.instances.row), slots = read_later(w.instances.sorted_slots),
               ranges = read_later(w.pixels.tile_ranges), last = read_later(w.pixels.last);
  device_->wait_blocking(device_->submit(), {WaitReason::Test, "roofline"}).or_raise();
  const auto words = [](const Ticket& ticket) {
    return reinterpret_cast<const uint32_t*>(ticket.bytes().data());
  };
  Counts counts;
  const auto state = control.as<Control>();
  if (state.gate.closed) {
    raise(Error{ErrorCode::Internal, "the frame needs more instances than there is room for"});
  }
  counts.instances = static_cast<double>(state.counts.instances);
  counts.visible = state.counts.visible;
  const FrameSize size = sizes_[view];
  counts.pixels = double{1} * size.width * size.height;
  counts.pairs = count_pairs({reinterpret_cast<const Projected*>(projected.bytes().data()),
                              words(rows), words(slots), words(ranges), words(last), size.width,
                              size.height});
  const uint64_t n_tiles = uint64_t{tiles_across(size.width)} * tiles_across(size.height);
  constexpr uint32_t kPixels = kTileSize * kTileSize;
  for (uint64_t tile = 0; tile < n_tiles; ++tile) {
    const uint32_t* pixels = words(last) + tile * kPixels;
    counts.walked_instances += *std::max_element(pixels, pixels + kPixels);
  }
  return counts;
}

// Bytes: what must come and go once.
std::map<std::string, Work> Roofline::work_of(const Counts& c) const {
  const auto n = static_cast<double>(n_rows_);
  const double rest_lanes = 3.0 * sh_rest_count(static_cast<int>(sh_degree_));
  const double lanes = uint32_t{kGeometryLanes} + rest_lanes;
  const auto pairs = static_cast<double>(c.pairs.blended);
  const double entry = 8 + sizeof(Projected);
  return {
      {"project",
       {n * kProjectOperations + c.visible * kShOperations,
        n * (4 * kGeometryLanes + 8) + c.visible * (4 * rest_lanes + sizeof(Projected))}},
      {"radix_sort_pairs", {0, 4 * 2 * 16 * n}},
      {"scan_tiles", {0, 12 * n}},
      {"emit_instances", {0, c.visible * (sizeof(Projected) + 8) + 8 * c.instances}},
      {"sort_instances", {0, 12 * c.instances}},
      {"blend_forward",
       {pairs * kBlendForwardOperations, c.walked_instances * entry + 20 * c.pixels}},
      {"photometric_forward",
       {3 * c.pixels * kLossForwardOperations, 3 * c.pixels * (4 + 1 + 3 * 4)}},
      {"photometric_backward",
       {3 * c.pixels * kLossBackwardOperations, 3 * c.pixels * (3 * 4 + 4 + 1 + 4)}},
      {"blend_backward",
       {pairs * kBlendBackwardOperations,
        c.walked_instances * entry + c.instances * sizeof(InstanceGradient) + 20 * c.pixels}},
      {"project_backward",
       {c.visible * (kRowBackwardOperations + kShOperations) + n * lanes * kAdamOperations,
        c.instances * sizeof(InstanceGradient) + n * (6 * 4 * lanes + 8)}},
  };
}

void Roofline::print(const std::map<std::string, double>& ms, const Counts& counts, double peak_256,
                     double peak_512) const {
  const std::map<std::string, Work> work = work_of(counts);
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [kernel, time] : ms) order.emplace_back(-time, kernel);
  std::ranges::sort(order);
  const auto pairs = static_cast<double>(counts.pairs.blended);
  const double blend_ms = ms.at("blend_forward") + ms.at("blend_backward");
  const double blend_gflops =
      pairs * (kBlendForwardOperations + kBlendBackwardOperations) / blend_ms * 1e-6;
  if (settings_.json) {
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (const auto& [negative, kernel] : order) {
      const auto found = work.find(kernel);
      const Work w = found == work.end() ? Work() : found->second;
      kernels.push_back(
          {{"kernel", kernel}, {"ms", -negative}, {"flops", w.flops}, {"bytes", w.bytes}});
    }
    const nlohmann::ordered_json json = {{"isa", kernels::hot_kernels().name},
                                         {"threads", settings_.train.threads},
                                         {"pairs_blended", counts.pairs.blended},
                                         {"pairs_boxed", counts.pairs.boxed},
                                         {"pairs_walked", counts.pairs.walked},
                                         {"instances", counts.instances},
                                         {"visible", counts.visible},
                                         {"avx2_peak_gflops", peak_256},
                                         {"avx512_peak_gflops", peak_512},
                                         {"blend_ms", blend_ms},
                                         {"blend_gpairs_per_second", pairs / blend_ms * 1e-6},
                                         {"blend_gflops", blend_gflops},
                                         {"kernels", kernels}};
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("{} threads, {}; {} views, median of {} rounds; {} Gaussians, {:.0f} visible, {:.0f} "
             "instances\n",
             settings_.train.threads, kernels::hot_kernels().name, views_.size(), settings_.rounds,
             n_rows_, counts.visible, counts.instances);
  fmt::print("pairs per frame: {} walked, {} in the Gaussians' boxes, {} blended\n",
             counts.pairs.walked, counts.pairs.boxed, counts.pairs.blended);
  fmt::print("peak: {:.1f} GFLOP/s with AVX2, {:.1f} with AVX-512\n\n", peak_256, peak_512);
  fmt::print("{:<24} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "kernel", "ms", "MFLOP", "GFLOP/s",
             "of AVX2", "MB", "GB/s");
  for (const auto& [negative, kernel] : order) {
    const double time = -negative;
    const auto found = work.find(kernel);
    if (found == work.end()) continue;
    const double gflops = found->second.flops / time * 1e-6;
    fmt::print("{:<24} {:>9.3f} {:>9.1f} {:>9.1f} {:>8.1f}% {:>9.1f} {:>9.1f}\n", kernel, time,
               found->second.flops * 1e-6, gflops, 100 * gflops / peak_256,
               found->second.bytes * 1e-6, found->second.bytes / time * 1e-6);
  }
  fmt::print("\nblend forward and backward: {:.3f} ms, {:.3f} G pairs/s through both, {:.1f} "
             "GFLOP/s = {:.1f}% of the AVX2 peak\n",
             blend_ms, pairs / blend_ms * 1e-6, blend_gflops, 100 * blend_gflops / peak_256);
}

void Roofline::run_blocking() {
  load_blocking();
  if (settings_.train.threads == 0) settings_.train.threads = device_->info().threads;
  const int threads = settings_.train.threads;
  constexpr double kPeakSeconds = 0.05;
  std::vector<double> peaks_256, peaks_512;
  std::map<std::string, double> ms;  // mean over views of the median over rounds
  Counts counts;
  const auto n_views = static_cast<double>(views_.size());
  for (uint32_t view = 0; view < views_.size(); ++view) {
    std::map<std::string, std::vector<double>> samples;
    for (int round = 0; round < settings_.rounds; ++round) {
      peaks_256.push_back(avx2_peak_gflops(threads, kPeakSeconds));
      peaks_512.push_back(avx512_peak_gflops(threads, kPeakSeconds));
      TraceRecorder trace(1024);
      frame_blocking(view, &trace);
      for (const TraceRecorder::DeviceTotal& total : trace.device_totals()) {
        samples[total.name].push_back(1e-6 * static_cast<double>(total.ns));
      }
    }
    for (const auto& [kernel, times] : samples) ms[kernel] += median(times) / n_views;
    const Counts here = count_blocking(view);
    counts.pairs.blended += here.pairs.blended;
    counts.pairs.boxed += here.pairs.boxed;
    counts.pairs.walked += here.pairs.walked;
    counts.instances += here.instances / n_views;
    counts.visible += here.visible / n_views;
    counts.walked_instances += here.walked_instances / n_views;
    counts.pixels += here.pixels / n_views;
  }
  counts.pairs.blended /= views_.size();
  counts.pairs.boxed /= views_.size();
  counts.pairs.walked /= views_.size();
  print(ms, counts, median(peaks_256), median(peaks_512));
}

}  // namespace
}  // namespace millrace::benchmarks

int main(int argc, char** argv) {
  using namespace millrace;
  benchmarks::Settings settings;
  int factor = 2;
  CLI::App app("Achieved arithmetic and memory speed of each CPU kernel of a training step.");
  app.add_option("dataset", settings.train.dataset)->required();
  app.add_option("model", settings.model, "PLY")->required();
  app.add_option("-r", factor, "resize factor");
  app.add_option("--threads", settings.train.threads, "0 = all");
  app.add_option("--views", settings.n_views, "training views to take");
  app.add_option("--rounds", settings.rounds, "repetitions of each view");
  app.add_flag("--json", settings.json);
  CLI11_PARSE(app, argc, argv);
  settings.train.resize_factor = static_cast<uint32_t>(factor);
  try {
    benchmarks::Roofline(std::move(settings)).run_blocking();
  } catch (const Exception& exception) {
    fmt::print(stderr, "kernel_roofline: {}\n", exception.what());
    return 1;
  }
  return 0;
}
