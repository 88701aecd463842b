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

  // Forward: image = render(model, camera), compared with the photograph. The gate decides in the
  // middle of it, as soon as the number of instances is known on the device.
  render_forward(frame);
  photometric_loss({in.step, state.model.control, pixels.image, in.target, pixels.loss_maps,
                    pixels.loss_partials, pixels.d_image, in.size.width, in.size.height});

  // Backward, in the opposite order. d_x stands for dLoss/dx.
  blend_backward(frame);

  // Commit. Behind a closed gate these three write nothing, so a replay starts from intact state.
  backward_with_adam(frame);
  mcmc_noise(state.model, in.step);
  commit(state.model, in.step, /*adds_rows=*/false);
}

void refine_transaction(TrainState& state, const Tensor& step) {
  decide(state.model, step, /*check_rows=*/true);
  mcmc_refine(state.model, step, state.refinement);
  commit(state.model, step, /*adds_rows=*/true);
}

void reorder_transaction(TrainState& state, const Tensor& step) {
  decide(state.model, step, /*check_rows=*/false);
  morton_reorder(state.model, step);
  commit(state.model, step, /*adds_rows=*/false);
}

}  // namespace millrace
