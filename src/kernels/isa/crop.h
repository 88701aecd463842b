// The crop box (TRAINING.md 4.6) on kWidth rows.
#pragma once

#include "kernels/isa/projection.h"

namespace millrace::kernels::MILLRACE_ISA {

/// The means of kWidth rows; `group` points at the block's lanes, offset to the first row.
static inline Vec3 load_mean(const float* group) {
  return {load(group + kLaneMean * kRowBlock), load(group + (kLaneMean + 1) * kRowBlock),
          load(group + (kLaneMean + 2) * kRowBlock)};
}

/// Which means the box rejects. One that is not a number is in no box. kernels/crop.h says the same
/// of one row.
static inline vi outside_crop(const CropStep& crop, const Vec3& mean) {
  vi inside = broadcast_int(-1);
  for (int axis = 0; axis < 3; ++axis) {
    const float* m = crop.world_to_box + 4 * axis;
    const vf p = m[0] * mean.x + m[1] * mean.y + m[2] * mean.z + m[3];
    inside &= (p >= crop.min[axis]) & (p <= crop.max[axis]);
  }
  return crop.inverse ? inside : ~inside;
}

}  // namespace millrace::kernels::MILLRACE_ISA
