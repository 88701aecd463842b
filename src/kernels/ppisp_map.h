// From PPISP's parameters of a frame to the map of its pixels, and gradients back
// (TRAINING.md 5.3).
#pragma once

#include "kernels/isa/hot.h"

namespace millrace::kernels {

/// The map of the frame and camera that `step` names.
PpispMap ppisp_map_of(const PpispParams& params, const StepBlock& step, const float* values);

/// Row-major 3x3, last entry 1, from eight latents.
void ppisp_homography(const float* latents, float* homography);

/// From sums over pixels [kPpispSums] to gradients [kPpispGradients] in the order of the
/// parameters. Those of a response that is not in use are zero.
void ppisp_parameter_gradients(const PpispParams& params, const StepBlock& step,
                               const float* values, const double* sums, float* gradients);

}  // namespace millrace::kernels
