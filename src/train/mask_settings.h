// What the mask settings mean: for kernels, and for scores.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/splat_params.h"
#include "train/options.h"

namespace millrace {

/// Whether masks are loaded at all.
inline bool uses_masks(const TrainOptions& options) { return options.mask_mode != "none"; }

/// The settings of masks; the rest is zero.
LossStep mask_settings(const TrainOptions& options);

/// How much each pixel of a mask counts in scores, 0 to 1, as in the photometric loss (TRAINING.md
/// 4.6): [H,W]. Empty, which is all alike, where the mode does not weigh pixels.
std::vector<float> mask_weights(const std::vector<uint8_t>& mask, const LossStep& loss);

/// What to tell of the masks: how much they keep, and whether that looks inverted. `mean`: of the
/// `n_masks` masks that were looked at.
std::string mask_note(const TrainOptions& options, double mean, uint32_t n_masks);

}  // namespace millrace
