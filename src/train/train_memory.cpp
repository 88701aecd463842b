// Sizes and growth of a run's memory.
#include "train/train_memory.h"

#include "train/mask_settings.h"

#include <algorithm>

#include "device/sizing_device.h"

namespace millrace {
namespace {

constexpr uint64_t kFirstRows = 1u << 16;
constexpr uint64_t kFirstInstances = 1u << 19;
constexpr uint64_t kInstancesPerRow = 4;

// What rows for `rows` of a model like `model` take.
uint64_t row_room_bytes(const Model& model, uint64_t rows) {
  SizingDevice device(0);
  const Model larger = make_empty_model(device, 1, model.max_sh_degree, rows);
  const RowBuffers buffers = make_row_buffers(device, rows);
  Model keeping = larger;
  McmcScratch scratch;
  if (model.statistics.defined()) {
    keep_statistics(keeping, 1);
  } else {
    scratch = make_mcmc_scratch(larger);
  }
  return device.memory().reserved_bytes;
}

}  // namespace

uint64_t first_row_capacity(uint64_t n_rows, uint64_t max_cap) {
  return std::min(std::max(2 * n_rows, kFirstRows), std::max(max_cap, n_rows));
}

// Gaussians shrink as they become many, so what a few large ones need at the start is not scaled.
uint64_t expected_instances(uint64_t n_rows, uint64_t at_start) {
  return std::max({kFirstInstances, kInstancesPerRow * n_rows, at_start + at_start / 8});
}

uint64_t first_instance_capacity(uint64_t n_rows, uint64_t at_start, const TrainOptions& options) {
  const uint64_t expected = expected_instances(n_rows, at_start);
  if (options.instance_budget == 0) return expected;
  return std::min(expected, options.instance_budget / instance_bytes(/*with_gradients=*/true));
}

uint64_t instance_room_bytes(uint64_t capacity, uint64_t n_tiles) {
  SizingDevice device(0);
  const InstanceBuffers buffers = make_instance_buffers(device, capacity, n_tiles, true);
  return device.memory().reserved_bytes;
}

PixelNeeds pixel_needs(const TrainOptions& options) {
  PixelNeeds needs;
  needs.gradients = true;
  needs.error_map = options.strategy == "mrnf";
  // A crop box may come by an edit of any step.
  const bool crops = !options.crop_box.empty() || !options.commands.empty();
  needs.structure = options.thin_structure_weight > 0 ||
                    (needs.error_map && options.densify_structure_weight > 0);
  const uint32_t masks = mask_settings(options).mask_mode;
  needs.weights = options.thin_structure_weight > 0 ||
                  (crops && options.crop_box_loss_weight < 1) ||
                  (masks != kMaskNone && masks != kMaskAlphaConsistent);
  needs.alpha_gradient = masks != kMaskNone && masks != kMaskIgnore;
  needs.edge_loss = options.gradient_loss_weight > 0;
  needs.raw_gradient = options.exposure_correction != "off";
  return needs;
}

void make_working_memory(TrainState& state, const std::vector<FrameSize>& sizes,
                         uint64_t n_instances, const PixelNeeds& needs) {
  Device& device = *state.model.device;
  Workspace& workspace = state.workspace;
  workspace.rows = make_row_buffers(device, state.model.row_capacity);
  workspace.pixels = make_pixel_buffers(device, sizes, needs);
  workspace.instances = make_instance_buffers(device, n_instances, workspace.pixels.n_tiles,
                                              /*with_gradients=*/true);
  if (!state.model.statistics.defined()) state.refinement = make_mcmc_scratch(state.model);
}

void prepare_strategy(Model& model, const TrainOptions& options, uint64_t n_rows) {
  if (options.strategy == "mrnf") keep_statistics(model, n_rows);
}

Result<void> make_device_room_blocking(Device& device, uint64_t bytes) {
  const MemoryStats memory = device.memory();
  if (bytes <= memory.limit_bytes - std::min(memory.limit_bytes, memory.reserved_bytes)) return {};
  return device.wait_blocking(device.submit(), {WaitReason::Resize, "trainer.grow"});
}

Result<void> grow_row_room_blocking(TrainState& state, uint64_t rows, uint64_t max_cap) {
  Model& model = state.model;
  if (rows <= model.row_capacity) return {};
  const uint64_t wanted = std::max(std::min(2 * model.row_capacity, std::max(max_cap, rows)), rows);
  Device& device = *model.device;
  MILLRACE_TRY(make_device_room_blocking(device, row_room_bytes(model, wanted)));
  grow_rows(model, wanted);
  state.workspace.rows = RowBuffers();
  state.workspace.rows = make_row_buffers(device, model.row_capacity);
  state.refinement = McmcScratch();
  if (!model.statistics.defined()) state.refinement = make_mcmc_scratch(model);
  return {};
}

}  // namespace millrace
