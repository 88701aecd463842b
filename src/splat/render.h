// Rendering a model from one view of the camera table, forward and backward. Everything here is
// queued.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/splat_params.h"
#include "splat/model.h"
#include "splat/workspace.h"
#include "tensor/tensor.h"

namespace millrace {

/// A device copy of camera records, [V].
Tensor make_camera_table(Device& device, const std::vector<CameraRecord>& cameras);
/// A device copy of one step block. Kernels get its address; the command stream is the same every
/// step.
Tensor upload_step_block(Device& device, const StepBlock& block);

/// What a frame is rendered from and into.
struct FrameContext {
  const Model& model;
  const Tensor& cameras;  // camera table
  const Tensor& step;     // step block
  Workspace& workspace;
  FrameSize size;         // of the view named in the step block
  uint64_t capacity = 0;  // instances this attempt may use; 0 = all that the workspace has
  bool with_depth = false;
  const Tensor* background = nullptr;  // [3,H,W] U8 behind the Gaussians; null: the step block's
  uint32_t n_bands = 1;  // passes over parts of the frame, each of at most `capacity` instances
  bool with_error_map = false;       // backward: workspace.pixels.error_map is summed by row
  bool with_alpha_gradient = false;  // backward: dLoss/d(opacity of the frame) is in pixels.d_alpha
};

/// Projects, counts, lets the gate decide, and blends. Leaves the image in workspace.pixels.image
/// [3,H,W]. If the frame needs more instances than the capacity (or more bands than n_bands), the
/// gate closes and the image is garbage. Bands change no bit of the result.
void render_forward(const FrameContext& frame);

/// Projects and counts, nothing more: control.counts.instances and .visible of the frame, whatever
/// the gate says. Takes of the workspace its row buffers alone.
void count_instances(const FrameContext& frame);

/// From workspace.pixels.d_image to one gradient record per instance.
void blend_backward(const FrameContext& frame);

/// From instance gradients to the parameters: one Adam step in place, regularisers included.
void backward_with_adam(const FrameContext& frame);

/// A gradient buffer with the shapes of the model's groups.
struct GradientBuffer {
  Tensor d_geometry, d_sh_rest;
};
GradientBuffer make_gradient_buffer(const Model& model);
/// Adds the frame's gradients (no regularisers) to `gradients`; zero it at the start of the
/// attempt.
void backward_accumulate(const FrameContext& frame, GradientBuffer& gradients);
/// One Adam step from `gradients`, regularisers included. Bit-equal to backward_with_adam for one
/// frame.
void adam_step(const FrameContext& frame, const GradientBuffer& gradients);

/// Lets the gate decide on a transaction that has no frame: `check_rows` for one that may add rows.
void decide(const Model& model, const Tensor& step, bool check_rows);
/// Ends a transaction of the given kind.
void commit(const Model& model, const Tensor& step, CommitMode mode);
/// Reopens the gate with a new epoch; queued after room was made.
void reopen_gate(const Model& model, uint32_t epoch);

}  // namespace millrace
