// A run in small: every kind of work that allocates, with the device as late as it may be.
#include "train/memory_sizing.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>

#include "data/image_loader.h"
#include "device/sizing_device.h"
#include "loss/photometric.h"
#include "train/appearance_setup.h"
#include "train/evaluation.h"
#include "train/photographs.h"
#include "train/publisher.h"
#include "train/runner.h"
#include "train/scene.h"
#include "train/target_cache.h"
#include "train/train_memory.h"

namespace millrace {
namespace {

constexpr uint32_t kFewAhead = 2;
// Step blocks and the like: how many are in flight is up to the device.
constexpr uint64_t kSmallBlocks = 64u << 10;
constexpr uint32_t kFramesBetween = 2 * kRunAhead;  // enough for every block to come back

class RunInSmall {
 public:
  RunInSmall(const PlanInputs& inputs, const MemorySettings& settings)
      : inputs_(inputs),
        settings_(settings),
        options_(inputs.options),
        device_(inputs.stages_in_its_pool ? inputs.staging_bytes : 0),
        targets_(inputs.train_views, settings.image_cache_bytes,
                 pixel_needs(inputs.options).structure) {
    options_.max_cap = settings.max_cap;
    options_.instance_budget = settings.instance_budget;
  }

  RunSizes run_blocking();

 private:
  void begin();
  void put(uint32_t view);
  void frame(bool trains);
  void refine();
  void grow_blocking();
  uint64_t snapshot_bytes();
  void size_host(uint64_t snapshot);
  void note_labels();
  bool happens(bool (Schedule::*after)(uint32_t) const) const;

  const PlanInputs& inputs_;
  const MemorySettings& settings_;
  TrainOptions options_;
  SizingDevice device_;
  TargetCache targets_;
  TrainState state_;
  std::vector<FrameSize> sizes_;  // of all views
  FrameSize largest_;
  std::unique_ptr<uint8_t[]> pixels_;  // never touched
  uint32_t next_view_ = 0;
  uint32_t n_bands_ = 1;
  struct Queued {
    Point point;
    Tensor step;
  };
  std::deque<Queued> queued_;
  std::deque<Target> pinned_;  // targets of frames in flight, and of refused ones to be repeated
  RunSizes out_;
};

RunSizes RunInSmall::run_blocking() {
  begin();
  const auto n_views = static_cast<uint32_t>(inputs_.train_views.size());
  for (uint32_t view = 0; targets_.all_resident() && view < n_views; ++view) put(view);
  for (uint32_t i = 0; i < kFramesBetween + n_views && i < 64; ++i) frame(true);
  note_labels();
  grow_blocking();
  if (happens(&Schedule::refines_after)) refine();
  for (uint32_t i = 0; i < kFramesBetween; ++i) frame(true);
  if (happens(&Schedule::reorders_after)) {
    const Tensor step = upload_step_block(device_, StepBlock());
    reorder_transaction(state_, step);
  }
  for (uint32_t i = 0; i < kFramesBetween; ++i) frame(true);
  const uint64_t snapshot = snapshot_bytes();
  for (uint32_t i = 0; i < kFramesBetween && !inputs_.eval_views.empty(); ++i) {
    frame(false);
  }
  note_labels();
  out_.device_peak_bytes = device_.memory().peak_reserved_bytes + kSmallBlocks;
  if (n_bands_ == 1) {
    SizingDevice bands(0);
    const BandBuffers buffers =
        make_band_buffers(bands, state_.model.row_capacity, state_.workspace.pixels.n_tiles);
    out_.band_bytes = bands.memory().reserved_bytes;
  }
  size_host(snapshot);
  return out_;
}

void RunInSmall::begin() {
  const uint64_t n = std::min(inputs_.n_points, settings_.max_cap);
  out_.n_rows = most_rows(inputs_, settings_.max_cap);
  out_.row_capacity =
      settings_.rows_at_once ? out_.n_rows : first_row_capacity(n, settings_.max_cap);
  const auto degree = static_cast<int>(options_.sh_degree);
  state_.model = make_empty_model(device_, n, degree, out_.row_capacity);
  prepare_strategy(state_.model, options_, n);
  out_.device_start_bytes = device_.memory().reserved_bytes;
  out_.start_bytes = initial_cloud_bytes(n, degree) + model_start_bytes(n, degree);
  std::set<std::pair<uint32_t, uint32_t>> different;
  for (const std::vector<View>* views : {&inputs_.train_views, &inputs_.eval_views}) {
    for (const View& view : *views) {
      const FrameSize size = frame_size(view.camera);
      sizes_.push_back(size);
      different.insert({size.width, size.height});
      const auto area = [](FrameSize s) { return uint64_t{s.width} * s.height; };
      if (area(size) > area(largest_)) largest_ = size;
    }
  }
  state_.cameras = make_camera_table(device_, std::vector<CameraRecord>(sizes_.size()));
  make_working_memory(state_, sizes_, first_instance_capacity(n, inputs_.start_instances, options_),
                      pixel_needs(options_));
  pixels_.reset(new uint8_t[uint64_t{3} * largest_.width * largest_.height]);
  if (!options_.bg_image.empty()) state_.background = BackgroundImages::sized(device_, sizes_);
  state_.appearance = Appearance(device_, appearance_setup(options_, inputs_.train_views), sizes_);
}

void RunInSmall::put(uint32_t view) {
  const Camera& camera = inputs_.train_views[view].camera;
  const size_t n = size_t{camera.width} * camera.height;
  targets_.put(device_, view, {pixels_.get(), 3 * n}, {pixels_.get(), n});
}

// A step or an evaluated view at the largest size, kRunAhead of them in flight.
void RunInSmall::frame(bool trains) {
  if (queued_.size() == kRunAhead) {
    device_.pass(queued_.front().point);
    queued_.pop_front();
  }
  StepInputs in = {upload_step_block(device_, StepBlock()), {}, largest_, 0, n_bands_};
  if (trains) {
    const uint32_t view = next_view_++ % static_cast<uint32_t>(inputs_.train_views.size());
    if (!targets_.find(view).defined()) put(view);
    in.target = targets_.find(view);
    const Camera& camera = inputs_.train_views[view].camera;
    in.size = frame_size(camera);
    train_step(state_, in);
  } else {
    eval_transaction(state_, in);
  }
  read_later(state_.model.control);
  queued_.push_back({device_.submit(), in.step});
  pinned_.push_back(in.target);
  if (pinned_.size() > 2 * (kRunAhead + 1)) pinned_.pop_front();
}

void RunInSmall::refine() {
  const Tensor step = upload_step_block(device_, StepBlock());
  refine_transaction(state_, step, inputs_.schedule.is_mrnf());
}

// Rows as refinements make them, and instances for them; then bands, if there is less room.
void RunInSmall::grow_blocking() {
  while (state_.model.row_capacity < out_.n_rows) {
    const uint64_t rows = std::min(out_.n_rows, state_.model.row_capacity + 1);
    grow_row_room_blocking(state_, rows, settings_.max_cap).or_raise();
    refine();
    for (uint32_t i = 0; i < kFramesBetween; ++i) frame(true);
  }
  out_.n_instances = first_instance_capacity(out_.n_rows, inputs_.start_instances, options_);
  InstanceBuffers& instances = state_.workspace.instances;
  if (out_.n_instances > instances.capacity) {
    instances = InstanceBuffers();
    instances = make_instance_buffers(device_, out_.n_instances, state_.workspace.pixels.n_tiles,
                                      /*with_gradients=*/true);
  }
  if (out_.n_instances < expected_instances(out_.n_rows, inputs_.start_instances)) n_bands_ = 2;
}

// The parameters of all rows, as a ticket brings them.
uint64_t RunInSmall::snapshot_bytes() {
  const uint64_t before = device_.downloaded_bytes();
  const Tensor step = upload_step_block(device_, StepBlock());
  snapshot_transaction(state_, step, out_.n_rows);
  return device_.downloaded_bytes() - before;
}

void RunInSmall::size_host(uint64_t snapshot) {
  out_.decodes_in_training = !targets_.all_resident();
  out_.n_ahead = settings_.is_frugal ? kFewAhead : Photographs::kMostAhead;
  ImageLoaderOptions loader;
  loader.cache_bytes = targets_.decoded_budget_bytes();
  // Before the first step fewer are asked for.
  const uint32_t ahead = out_.decodes_in_training ? out_.n_ahead : Photographs::kPreloadAhead;
  out_.decode_bytes = image_loader_bytes(inputs_.train_views, loader, ahead);

  uint64_t image = 0;
  for (const View& view : inputs_.eval_views) {
    image = std::max(image, uint64_t{3} * sizeof(float) * view.camera.width * view.camera.height);
  }
  // A host that computes for the device gains nothing by letting views wait for it.
  const uint64_t waiting = inputs_.shares_host_memory ? image : Publisher::kMostWaitingBytes;
  out_.most_waiting_bytes = settings_.is_frugal ? 0 : waiting;
  const uint64_t n_images = std::min<uint64_t>(
      inputs_.eval_views.size(), image > 0 ? out_.most_waiting_bytes / image + 1 + kRunAhead : 0);
  // Snapshots close to each other are recorded before the first has come.
  uint64_t n_snapshots = 1;
  const std::vector<uint32_t>& saves = inputs_.saves;
  for (size_t i = 1; i < saves.size(); ++i) {
    n_snapshots = std::max<uint64_t>(n_snapshots, i >= 2 && saves[i] - saves[i - 2] <= kRunAhead
                                                      ? 3
                                                      : (saves[i] - saves[i - 1] <= kRunAhead) + 1);
  }
  const uint64_t saving =
      n_snapshots * snapshot + saving_bytes(static_cast<int>(options_.sh_degree));
  const uint64_t scoring = scoring_bytes(inputs_.eval_views);
  // One thread does both; a snapshot may wait for it while it scores an earlier evaluation.
  const bool one_at_a_time =
      inputs_.saves.size() <= 1 && inputs_.evals.size() <= 1 && inputs_.saves == inputs_.evals;
  out_.output_bytes =
      n_images * image + (one_at_a_time ? std::max(saving, scoring) : saving + scoring);
}

void RunInSmall::note_labels() {
  for (const MemoryStats::Kind& kind : device_.memory().by_label) {
    out_.by_label[kind.label] = kind.bytes;
  }
}

bool RunInSmall::happens(bool (Schedule::*after)(uint32_t) const) const {
  const uint32_t first_of_each = std::max(options_.stop_refine, options_.morton_interval + 1);
  for (uint32_t step = 0; step < std::min(options_.iterations, first_of_each); ++step) {
    if ((inputs_.schedule.*after)(step)) return true;
  }
  return false;
}

}  // namespace

uint64_t most_rows(const PlanInputs& inputs, uint64_t max_cap) {
  const TrainOptions& options = inputs.options;
  uint64_t rows = std::min(inputs.n_points, max_cap);
  for (uint32_t step = 0; step < std::min(options.iterations, options.stop_refine); ++step) {
    if (!inputs.schedule.refines_after(step)) continue;
    const uint64_t cap = std::min(max_cap, inputs.schedule.max_cap(step));
    rows = inputs.schedule.row_bound_after(step, rows, cap);
  }
  return rows;
}

uint64_t largest_target_bytes(const std::vector<View>& views) {
  uint64_t bytes = 0;
  for (const View& view : views) {
    bytes = std::max(bytes, n_target_planes(view) * view.camera.width * view.camera.height);
  }
  return bytes;
}

RunSizes size_run(const PlanInputs& inputs, const MemorySettings& settings) {
  return RunInSmall(inputs, settings).run_blocking();
}

}  // namespace millrace
