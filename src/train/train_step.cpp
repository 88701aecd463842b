// One optimisation step, in the order of the algorithm.
#include "train/train_step.h"

#include "loss/photometric.h"
#include "strategy/morton.h"

namespace millrace {

void train_step(TrainState& state, const StepInputs& in) {
  const FrameContext frame = {state.model,
                              state.cameras,
                              in.step,
                              state.workspace,
                              in.size,
                              in.capacity,
                              /*with_depth=*/false,
                              state.background.of(in.size),
                              in.n_bands};
  PixelBuffers& pixels = state.workspace.pixels;

  // Forward: image = appearance(render(model, camera)), compared with the photograph. The gate
  // decides in the middle of it, as soon as the number of instances is known on the device.
  render_forward(frame);
  const AppearanceFrame rendered = {in.step, state.model.control, pixels.image, in.size};
  const Tensor& corrected = state.appearance.forward(rendered);
  photometric_loss({in.step, state.model.control, corrected, in.target, pixels.loss_maps,
                    pixels.loss_partials, pixels.d_image, in.size.width, in.size.height});

  // Backward, in the opposite order. d_x stands for dLoss/dx.
  state.appearance.backward(rendered, pixels.d_image);
  blend_backward(frame);

  // Commit. Behind a closed gate these write nothing, so a replay starts from intact state.
  backward_with_adam(frame);
  mcmc_noise(state.model, in.step);
  state.appearance.update(in.step, state.model.control);
  commit(state.model, in.step, CommitMode::Step);
}

void refine_transaction(TrainState& state, const Tensor& step) {
  decide(state.model, step, /*check_rows=*/true);
  mcmc_refine(state.model, step, state.refinement);
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
