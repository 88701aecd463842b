// What a run shows while it goes on, from its settings and edits.
#pragma once

#include "train/edit_log.h"
#include "train/options.h"
#include "train/schedule.h"

namespace millrace {

/// The steps of --eval-steps, --save-steps and the edits up to `last_step`, at which the state is
/// always shown. n_eval_views is left to the caller.
OutputPlan planned_outputs(const TrainOptions& options, const EditLog& edits, uint32_t last_step);

}  // namespace millrace
