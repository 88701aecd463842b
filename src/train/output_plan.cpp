// Steps at which something is shown.
#include "train/output_plan.h"

#include <set>

namespace millrace {

OutputPlan planned_outputs(const TrainOptions& options, const EditLog& edits, uint32_t last_step) {
  std::set<uint32_t> evals(options.eval_steps.begin(), options.eval_steps.end());
  std::set<uint32_t> saves(options.save_steps.begin(), options.save_steps.end());
  for (const Edit& edit : edits.edits()) {
    if (edit.eval) evals.insert(edit.step);
    if (edit.save) saves.insert(edit.step);
  }
  OutputPlan plan;
  for (std::set<uint32_t>* steps : {&evals, &saves}) {
    steps->insert(last_step);
    if (last_step > 0) steps->erase(0);
    steps->erase(steps->upper_bound(last_step), steps->end());
  }
  plan.evals.assign(evals.begin(), evals.end());
  plan.saves.assign(saves.begin(), saves.end());
  return plan;
}

}  // namespace millrace
