// Whether a kernel may write what lasts: the decision of its transaction.
#pragma once

#include "kernels/splat_params.h"

namespace millrace::kernels {

/// True if gate_decide accepted the transaction of `step`.
inline bool accepted(const StepBlock& step, const Control& control) {
  return control.gate.accepted == step.transaction;
}

}  // namespace millrace::kernels
