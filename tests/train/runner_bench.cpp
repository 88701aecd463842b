// Setting up a Runner as train() does, with room chosen by the test.
#include "train/runner_bench.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "io/image_write.h"
#include "train/appearance_setup.h"
#include "train/open_device.h"
#include "train/scene.h"
#include "train/strategy_options.h"
#include "train/train_memory.h"

namespace millrace::test {

namespace {

// A mask that leaves out the right half.
void give_mask(View& view) {
  const std::filesystem::path file = scratch_folder() / "half_mask.png";
  if (!std::filesystem::exists(file)) {
    Image8 mask = {view.file_width, view.file_height, 3, {}, {}};
    for (uint32_t i = 0; i < mask.width * mask.height; ++i) {
      mask.pixels.insert(mask.pixels.end(), 3, i % mask.width < mask.width / 2 ? 255 : 0);
    }
    write_png8(file, mask).or_raise();
  }
  view.mask_path = file;
  view.mask_width = view.file_width;
  view.mask_height = view.file_height;
}

}  // namespace

RunnerBench::RunnerBench(const TrainOptions& given, Room room)
    : options(resolved_options(given)),
      device(open_training_device(given.device, given.threads).or_raise()),
      scale(scene_scale(tiny_dataset())) {
  const GaussianCloud cloud = initial_cloud(tiny_dataset(), options, nullptr);
  initial_rows = cloud.count();
  const uint64_t rows = room.rows ? std::max(room.rows, cloud.count()) : uint64_t{4096};
  state.model = make_model(device, cloud, static_cast<int>(options.sh_degree), rows);
  prepare_strategy(state.model, options, cloud.count());
  std::vector<View> views;
  std::vector<CameraRecord> cameras, eval_cameras;
  std::vector<FrameSize> sizes;
  for (const View& view : tiny_dataset().views) {
    const CameraRecord camera = make_camera_record(view.camera, kNearPlane * scale.normaliser);
    (view.held_out ? eval_cameras : cameras).push_back(camera);
    (view.held_out ? eval_sizes : sizes).push_back(frame_size(view.camera));
    if (view.held_out) continue;
    views.push_back(view);
    // Every second photograph has a mask.
    if (options.mask_mode != "none" && views.size() % 2 == 1) give_mask(views.back());
  }
  cameras.insert(cameras.end(), eval_cameras.begin(), eval_cameras.end());
  state.cameras = make_camera_table(device, cameras);
  state.workspace.rows = make_row_buffers(device, state.model.row_capacity);
  state.workspace.pixels = make_pixel_buffers(device, sizes, pixel_needs(options));
  state.workspace.instances = make_instance_buffers(
      device, room.instances ? room.instances : 1u << 18, state.workspace.pixels.n_tiles, true);
  if (!state.model.statistics.defined()) state.refinement = make_mcmc_scratch(state.model);
  begin_strategy(state, views, scale);
  if (!options.bg_image.empty()) {
    state.background = BackgroundImages::load(device, options.bg_image, sizes).or_raise();
  }
  state.appearance = Appearance(device, appearance_setup(options, views), sizes);
  ImageLoaderOptions loader;
  loader.artificial_delay_ms = options.test_decode_delay_ms;
  photographs =
      std::make_unique<Photographs>(device, views, loader, options.image_cache_bytes,
                                    Photographs::kMostAhead, pixel_needs(options).structure);
  photographs->preload_blocking({0}, {}).or_raise();
  runner = std::make_unique<Runner>(device, options, scale, state, *photographs, sizes, &edits);
}

void RunnerBench::keep_decoders_ahead() {
  device.after_submit = [this] {
    while (photographs->undecoded() > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  };
}

void RunnerBench::plan_outputs(const OutputPlan& plan, RunSink* sink) {
  runner->plan_outputs(plan, eval_sizes, sink);
}

Result<void> RunnerBench::run_blocking(uint32_t end_step) {
  const auto take = [&](const StepMetrics& metrics) { accepted.push_back(metrics); };
  MILLRACE_TRY(runner->run_until_blocking(end_step, stop, take));
  return runner->settle_blocking(take);
}

std::string RunnerBench::hash_blocking() {
  return state_sha256_blocking(state.model, {runner->next_step(), options.seed},
                               state.appearance.state())
      .or_raise();
}

uint64_t RunnerBench::rows_blocking() {
  const Ticket control = read_later(state.model.control);
  device.wait_blocking(device.submit(), {WaitReason::Test, "test.rows"}).or_raise();
  return control.as<Control>().counts.rows;
}

}  // namespace millrace::test
