// One optimisation step, in the order of the algorithm.
#include "train/train_step.h"

#include "loss/photometric.h"
#include "loss/pixel_weights.h"
#include "strategy/morton.h"

namespace millrace {
namespace {

const Tensor* if_defined(const Tensor& tensor) { return tensor.defined() ? &tensor : nullptr; }

// The loss between the image, as appearance left it, and its target; the gradients of image and
// opacity.
void loss_of_step(TrainState& state, const StepInputs& in, const Tensor& image) {
  PixelBuffers& pixels = state.workspace.pixels;
  const Tensor& control = state.model.control;
  PhotometricLoss loss = {in.step,          control,          image,
                          in.target.pixels, pixels.loss_maps, pixels.loss_partials,
                          pixels.d_image,   in.size.width,    in.size.height};
  if (state.appearance.is_on()) {
    loss.raw = &pixels.image;
    loss.d_raw = &pixels.d_raw;
  }
  loss.totals = &pixels.loss_totals;
  loss.mask = if_defined(in.target.mask);
  loss.structure = if_defined(in.target.structure);
  if (pixels.needs.weights) {
    loss.weight = &pixels.weight;
    pixel_weights({in.step, control, state.cameras, loss.mask, loss.structure, pixels.weight,
                   pixels.loss_totals, in.size.width, in.size.height});
  }
  if (pixels.needs.alpha_gradient) {
    loss.has_penalty = true;
    opacity_penalty({in.step, control, state.cameras, loss.mask, pixels.transmittance,
                     pixels.d_alpha, pixels.loss_totals, in.size.width, in.size.height});
  }
  if (pixels.needs.error_map) loss.error_map = &pixels.error_map;
  loss.edge_loss = pixels.needs.edge_loss;
  photometric_loss(loss);
}

}  // namespace

void train_step(TrainState& state, const StepInputs& in) {
  const PixelNeeds& needs = state.workspace.pixels.needs;
  const FrameContext frame = {state.model,
                              state.cameras,
                              in.step,
                              state.workspace,
                              in.size,
                              in.capacity,
                              /*with_depth=*/false,
                              state.background.of(in.size),
                              in.n_bands,
                              /*with_error_map=*/needs.error_map,
                              /*with_alpha_gradient=*/needs.alpha_gradient};

  // Forward: image = appearance(render(model, camera)), compared with the photograph. The gate
  // decides in the middle of it, as soon as the number of instances is known on the device.
  render_forward(frame);
  const AppearanceFrame rendered = {in.step, state.model.control, state.workspace.pixels.image,
                                    in.size};
  loss_of_step(state, in, state.appearance.forward(rendered));

  // Backward, in the opposite order. d_x stands for dLoss/dx.
  state.appearance.backward(rendered, state.workspace.pixels);
  blend_backward(frame);

  // Commit. Behind a closed gate these write nothing, so a replay starts from intact state.
  backward_with_adam(frame);
  if (state.model.statistics.defined()) {
    mrnf_noise(state.model, in.step);
  } else {
    mcmc_noise(state.model, in.step);
  }
  state.appearance.update(in.step, state.model.control);
  commit(state.model, in.step, CommitMode::Step);
}

void refine_transaction(TrainState& state, const Tensor& step, bool measures) {
  decide(state.model, step, /*check_rows=*/true);
  if (state.model.statistics.defined()) {
    mrnf_refine(state.model, step, state.workspace.rows.row_ids, measures);
  } else {
    mcmc_refine(state.model, step, state.refinement);
  }
  commit(state.model, step, CommitMode::Refine);
}

void reorder_transaction(TrainState& state, const Tensor& step) {
  decide(state.model, step, /*check_rows=*/false);
  morton_reorder(state.model, step);
  commit(state.model, step, CommitMode::Other);
}

Ticket eval_transaction(TrainState& state, const StepInputs& in) {
  PixelBuffers& pixels = state.workspace.pixels;
  render_forward({state.model, state.cameras, in.step, state.workspace, in.size, in.capacity,
                  /*with_depth=*/false, state.background.of(in.size), in.n_bands});
  const auto n = static_cast<int64_t>(uint64_t{in.size.width} * in.size.height);
  Ticket image = read_later(pixels.image.slice(0, 0, 3 * n));
  commit(state.model, in.step, CommitMode::Other);
  return image;
}

ModelSnapshot snapshot_transaction(TrainState& state, const Tensor& step, uint64_t row_bound) {
  decide(state.model, step, /*check_rows=*/false);
  commit(state.model, step, CommitMode::Other);
  return read_model_later(state.model, row_bound, /*with_moments=*/false);
}

}  // namespace millrace
