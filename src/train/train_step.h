// One optimisation step, and the transactions between steps.
#pragma once

#include "appearance/appearance.h"
#include "data/scene_scale.h"
#include "splat/render.h"
#include "strategy/mcmc.h"
#include "strategy/mrnf.h"
#include "train/background_image.h"
#include "train/schedule.h"
#include "train/target_cache.h"

namespace millrace {

/// What training changes, and the memory it works in.
struct TrainState {
  Model model;
  Tensor cameras;  // camera table of the training views
  Workspace workspace;
  McmcScratch refinement;  // MCMC's
  BackgroundImages background;
  Appearance appearance;
};

/// The inputs of one step or evaluated view, pinned by the caller until it was accepted.
struct StepInputs {
  Tensor step;    // step block
  Target target;  // an evaluation has none
  FrameSize size;
  uint64_t capacity = 0;  // instances this attempt may use; 0 = all there is room for
  uint32_t n_bands = 1;   // passes over parts of the frame
};

/// Records one optimisation step on one view and returns; nothing here waits. If the frame outgrows
/// its capacity the gate closes and none of this changes anything that lasts.
void train_step(TrainState& state, const StepInputs& inputs);

/// Records the densification that follows a step. `measures`: MRNF's bounds too, as the step block
/// says.
void refine_transaction(TrainState& state, const Tensor& step, bool measures = false);
/// Records a Morton reordering.
void reorder_transaction(TrainState& state, const Tensor& step);
/// Records the rendering of one view; the ticket brings the image, [3,H,W] F32. It is garbage if
/// the transaction is refused.
Ticket eval_transaction(TrainState& state, const StepInputs& inputs);
/// Records a snapshot of the parameters; void if the transaction is refused. `row_bound`: of N.
ModelSnapshot snapshot_transaction(TrainState& state, const Tensor& step, uint64_t row_bound);

}  // namespace millrace
