// Rendering: the launches of a frame in order.
#include "splat/render.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tensor/launch.h"
#include "tensor/ops.h"

namespace millrace {
namespace {

template <class Record>
Tensor upload_records(Device& device, const Record* records, size_t n, const char* label) {
  static_assert(sizeof(Record) % sizeof(uint32_t) == 0);
  const size_t words = n * sizeof(Record) / sizeof(uint32_t);
  const std::span<const uint32_t> span(reinterpret_cast<const uint32_t*>(records), words);
  return Tensor::from_host(device, span, Shape{words}, label);
}

// What is bound as the background: an image, or a single element that says there is none.
const Tensor& background_of(const FrameContext& frame) {
  return frame.background ? *frame.background : frame.workspace.pixels.error_map;
}

FrameParams frame_params(const FrameContext& frame) {
  FrameParams params = {};
  params.width = frame.size.width;
  params.height = frame.size.height;
  params.tiles_x = tiles_across(frame.size.width);
  params.tiles_y = tiles_across(frame.size.height);
  const uint64_t room = frame.workspace.instances.capacity;
  params.capacity = frame.capacity == 0 ? room : std::min(frame.capacity, room);
  params.sh_rest_lanes = frame.model.sh_rest.lanes;
  params.write_depth = frame.with_depth ? 1 : 0;
  params.n_bands = frame.n_bands;
  if (frame.background) params.inputs |= kFrameHasBackground;
  if (frame.with_error_map) params.inputs |= kFrameHasErrorMap;
  if (frame.with_alpha_gradient) params.inputs |= kFrameHasAlphaGradient;
  return params;
}

void project(const FrameContext& frame, const FrameParams& params) {
  const Model& model = frame.model;
  const RowBuffers& rows = frame.workspace.rows;
  launch(
      *model.device, KernelId::project, rows.capacity,
      {read(frame.step), read(frame.cameras), read(model.geometry.value), read(model.sh_rest.value),
       update(model.control), write(rows.projected), write(rows.n_tiles), write(rows.depth_key)},
      params);
}

// Instances of the frame or band, by tile and depth. `n_tiles`: of each row in it.
void emit_and_sort(const FrameContext& frame, const FrameParams& params, const Tensor& n_tiles) {
  Device& device = *frame.model.device;
  const RowBuffers& rows = frame.workspace.rows;
  InstanceBuffers& instances = frame.workspace.instances;
  launch(
      device, KernelId::emit_instances, rows.capacity,
      {read(frame.step), read(frame.model.control), read(rows.projected), read(n_tiles),
       read(rows.first_slot), read(instances.bands), write(instances.tile), write(instances.row)},
      params);
  launch(device, KernelId::sort_instances, instances.capacity,
         {read(frame.step), read(frame.model.control), read(instances.bands), read(instances.tile),
          write(instances.sorted_slots), write(frame.workspace.pixels.tile_ranges),
          update(instances.histogram)},
         params);
}

void blend_forward(const FrameContext& frame, const FrameParams& params) {
  InstanceBuffers& instances = frame.workspace.instances;
  PixelBuffers& pixels = frame.workspace.pixels;
  launch(*frame.model.device, KernelId::blend_forward, uint64_t{params.tiles_x} * params.tiles_y,
         {read(frame.step), read(frame.model.control), read(frame.workspace.rows.projected),
          read(instances.row), read(instances.sorted_slots), read(pixels.tile_ranges),
          read(background_of(frame)), read(instances.bands), update(pixels.image),
          update(pixels.transmittance), update(pixels.last), update(pixels.depth_alpha)},
         params);
}

void blend_backward(const FrameContext& frame, const FrameParams& params) {
  InstanceBuffers& instances = frame.workspace.instances;
  PixelBuffers& pixels = frame.workspace.pixels;
  launch(*frame.model.device, KernelId::blend_backward, uint64_t{params.tiles_x} * params.tiles_y,
         {read(frame.step), read(frame.model.control), read(frame.workspace.rows.projected),
          read(instances.row), read(instances.sorted_slots), read(pixels.tile_ranges),
          read(background_of(frame)), read(instances.bands), read(pixels.transmittance),
          read(pixels.last), read(pixels.d_image), read(pixels.error_map),
          read(frame.with_alpha_gradient ? pixels.d_alpha : pixels.error_map),
          write(instances.gradients), update(instances.carry)},
         params);
}

// Cuts the frame into bands and lets the gate decide whether those that are recorded will do.
void plan_and_decide_bands(const FrameContext& frame, const FrameParams& params,
                           const Tensor& order) {
  Device& device = *frame.model.device;
  RowBuffers& rows = frame.workspace.rows;
  InstanceBuffers& instances = frame.workspace.instances;
  BandBuffers& bands = frame.workspace.bands;
  if (bands.row_capacity != rows.capacity) {
    bands = make_band_buffers(device, rows.capacity, frame.workspace.pixels.n_tiles);
  }
  bands.order = order;
  launch(device, KernelId::count_tile_instances, rows.capacity,
         {read(frame.model.control), read(rows.projected), read(rows.n_tiles),
          write(bands.tile_counts)},
         params);
  launch(device, KernelId::plan_bands, 1, {read(bands.tile_counts), write(instances.bands)},
         params);
  DecideParams decision = {};
  decision.n_bands = params.n_bands;
  launch(device, KernelId::gate_decide_bands, 1,
         {read(frame.step), update(frame.model.control), read(instances.bands)}, decision);
}

// The instances of params.band.
void prepare_band(const FrameContext& frame, const FrameParams& params) {
  Device& device = *frame.model.device;
  RowBuffers& rows = frame.workspace.rows;
  BandBuffers& bands = frame.workspace.bands;
  launch(device, KernelId::count_band, rows.capacity,
         {read(frame.step), read(frame.model.control), read(rows.projected), read(rows.n_tiles),
          read(frame.workspace.instances.bands), write(bands.n_tiles)},
         params);
  launch(
      device, KernelId::scan_tiles, rows.capacity,
      {read(bands.order), read(bands.n_tiles), update(frame.model.control), write(rows.first_slot)},
      params);
  emit_and_sort(frame, params, bands.n_tiles);
}

void add_band_gradients(const FrameContext& frame, const FrameParams& params) {
  const RowBuffers& rows = frame.workspace.rows;
  BandBuffers& bands = frame.workspace.bands;
  launch(*frame.model.device, KernelId::sum_band_gradients, rows.capacity,
         {read(frame.step), read(frame.model.control), read(rows.n_tiles), read(bands.n_tiles),
          read(rows.first_slot), read(frame.workspace.instances.gradients),
          read(frame.workspace.instances.bands), update(bands.sums), update(bands.visible)},
         params);
}

// Where each row's 2D gradients lie: one record per instance, or one sum after bands.
struct RowGradientSource {
  const Tensor &n_records, &first_record, &records;
};
RowGradientSource gradient_source(const FrameContext& frame) {
  Workspace& workspace = frame.workspace;
  if (frame.n_bands == 1) {
    return {workspace.rows.n_tiles, workspace.rows.first_slot, workspace.instances.gradients};
  }
  return {workspace.bands.visible, workspace.rows.row_ids, workspace.bands.sums};
}

}  // namespace

Tensor make_camera_table(Device& device, const std::vector<CameraRecord>& cameras) {
  return upload_records(device, cameras.data(), cameras.size(), "cameras");
}

Tensor upload_step_block(Device& device, const StepBlock& block) {
  return upload_records(device, &block, 1, "step blocks");
}

void count_instances(const FrameContext& frame) {
  FrameParams params = frame_params(frame);
  params.n_bands = 1;
  project(frame, params);
  // A sum needs no order: the rows in their own.
  const RowBuffers& rows = frame.workspace.rows;
  launch(
      *frame.model.device, KernelId::scan_tiles, rows.capacity,
      {read(rows.row_ids), read(rows.n_tiles), update(frame.model.control), write(rows.first_slot)},
      params);
}

void render_forward(const FrameContext& frame) {
  Device& device = *frame.model.device;
  const Model& model = frame.model;
  RowBuffers& rows = frame.workspace.rows;
  FrameParams params = frame_params(frame);

  // Counting: runs behind a closed gate too, so that one growth serves all queued views.
  project(frame, params);
  const Tensor order = radix_sort_pairs(rows.depth_key, rows.row_ids, live_row_count(model)).values;
  FrameParams undivided = params;
  undivided.n_bands = 1;
  launch(device, KernelId::scan_tiles, rows.capacity,
         {read(order), read(rows.n_tiles), update(model.control), write(rows.first_slot)},
         undivided);

  if (frame.n_bands == 1) {
    DecideParams decision = {};
    decision.capacity = params.capacity;
    decision.row_capacity = std::numeric_limits<uint64_t>::max();
    launch(device, KernelId::gate_decide, 1, {read(frame.step), update(model.control)}, decision);
    emit_and_sort(frame, params, rows.n_tiles);
    blend_forward(frame, params);
    return;
  }
  plan_and_decide_bands(frame, params, order);
  for (params.band = 0; params.band < params.n_bands; ++params.band) {
    prepare_band(frame, params);
    blend_forward(frame, params);
  }
}

void blend_backward(const FrameContext& frame) {
  FrameParams params = frame_params(frame);
  if (params.n_bands == 1) {
    blend_backward(frame, params);
    return;
  }
  params.backward = 1;
  // The loss needed the whole image; now the bands again, which hold no more than one at a time.
  for (params.band = 0; params.band < params.n_bands; ++params.band) {
    prepare_band(frame, params);
    blend_backward(frame, params);
    add_band_gradients(frame, params);
  }
}

void backward_with_adam(const FrameContext& frame) {
  const Model& model = frame.model;
  const RowGradientSource source = gradient_source(frame);
  BackwardParams params = {};
  params.sh_rest_lanes = model.sh_rest.lanes;
  params.fused_adam = 1;
  const bool keeps = model.statistics.defined();
  params.statistics = keeps ? kStatisticsOn : 0;
  launch(*model.device, KernelId::project_backward, frame.workspace.rows.capacity,
         {read(frame.step), read(frame.cameras), update(model.control), read(source.n_records),
          read(source.first_record), read(source.records), update(model.geometry.value),
          update(model.geometry.first_moment), update(model.geometry.second_moment),
          update(model.sh_rest.value), update(model.sh_rest.first_moment),
          update(model.sh_rest.second_moment),
          // The error map stands in where no statistics are kept.
          update(keeps ? model.statistics : frame.workspace.pixels.error_map)},
         params);
}

GradientBuffer make_gradient_buffer(const Model& model) {
  return {Tensor::zeros(*model.device, model.geometry.value.shape(), Dtype::F32, "gradients"),
          Tensor::zeros(*model.device, model.sh_rest.value.shape(), Dtype::F32, "gradients")};
}

void backward_accumulate(const FrameContext& frame, GradientBuffer& gradients) {
  const Model& model = frame.model;
  const RowGradientSource source = gradient_source(frame);
  BackwardParams params = {};
  params.sh_rest_lanes = model.sh_rest.lanes;
  launch(*model.device, KernelId::project_backward_accumulate, frame.workspace.rows.capacity,
         {read(frame.step), read(frame.cameras), read(model.control), read(source.n_records),
          read(source.first_record), read(source.records), read(model.geometry.value),
          read(model.sh_rest.value), update(gradients.d_geometry), update(gradients.d_sh_rest)},
         params);
}

void adam_step(const FrameContext& frame, const GradientBuffer& gradients) {
  const Model& model = frame.model;
  BackwardParams params = {};
  params.sh_rest_lanes = model.sh_rest.lanes;
  launch(
      *model.device, KernelId::adam_step, model.row_capacity,
      {read(frame.step), update(model.control), read(gradients.d_geometry),
       read(gradients.d_sh_rest), update(model.geometry.value), update(model.geometry.first_moment),
       update(model.geometry.second_moment), update(model.sh_rest.value),
       update(model.sh_rest.first_moment), update(model.sh_rest.second_moment)},
      params);
}

void decide(const Model& model, const Tensor& step, bool check_rows) {
  DecideParams params = {};
  params.capacity = std::numeric_limits<uint64_t>::max();
  params.row_capacity = check_rows ? model.row_capacity : std::numeric_limits<uint64_t>::max();
  params.check_rows = check_rows ? 1 : 0;
  launch(*model.device, KernelId::gate_decide, 1, {read(step), update(model.control)}, params);
}

void commit(const Model& model, const Tensor& step, CommitMode mode) {
  RowsParams params = {};
  params.sh_rest_lanes = model.sh_rest.lanes;
  params.mode = static_cast<uint32_t>(mode);
  launch(*model.device, KernelId::commit_step, 1, {read(step), update(model.control)}, params);
}

void reopen_gate(const Model& model, uint32_t epoch) {
  launch(*model.device, KernelId::gate_reopen, 1, {update(model.control)}, ReopenParams{epoch, 0});
}

}  // namespace millrace
