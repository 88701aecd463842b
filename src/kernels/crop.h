// The crop box (TRAINING.md 4.6) on one row, for kernels that are not vectors. slang/crop.slang and
// isa/crop.h say the same.
#pragma once

#include "kernels/splat_params.h"

namespace millrace::kernels {

/// Whether the box rejects a row with this mean, [3] world units. Means nothing unless
/// crop.enabled. A mean that is not a number is in no box.
inline bool outside_crop(const CropStep& crop, const float* mean) {
  bool inside = true;
  for (int axis = 0; axis < 3; ++axis) {
    const float* m = crop.world_to_box + 4 * axis;
    const float p = m[0] * mean[0] + m[1] * mean[1] + m[2] * mean[2] + m[3];
    inside = inside && p >= crop.min[axis] && p <= crop.max[axis];
  }
  return inside == (crop.inverse != 0);
}

/// What a refinement's score of a row is multiplied by.
inline float crop_score(const CropStep& crop, const float* mean) {
  return crop.enabled && outside_crop(crop, mean) ? crop.rate_scale : 1.0f;
}

}  // namespace millrace::kernels
