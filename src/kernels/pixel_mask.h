// What a mask, a ridge map and the crop box say of a pixel. GPU twin: slang/pixel_mask.slang.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/splat_params.h"

namespace millrace::kernels {

/// Whether a mask of this mode weighs pixels.
inline bool mask_weighs(const LossStep& loss) {
  return loss.mask_mode != kMaskNone && loss.mask_mode != kMaskAlphaConsistent;
}

/// The mask as the settings see it, 0 to 255.
inline uint32_t mask_byte(const LossStep& loss, uint8_t byte) {
  return loss.mask_inverted ? 255u - byte : byte;
}

/// How much a pixel of this mask value counts in the photometric loss, 0 to 1 (TRAINING.md 4.6).
inline float mask_weight(const LossStep& loss, uint8_t byte) {
  const uint32_t value = mask_byte(loss, byte);
  if (loss.mask_mode == kMaskSegmentAndIgnore) return value > 250 ? 1.0f : 0.0f;
  const float m = static_cast<float>(value) * (1.0f / 255.0f);
  return m >= loss.mask_threshold ? 1.0f : m;
}

/// 1 + weight S of a pixel of a ridge map (TRAINING.md 4.4).
inline float structure_factor(float weight, uint8_t byte) {
  return 1.0f + weight * (static_cast<float>(byte) * (1.0f / kStructureUnit));
}

/// What a mask has against the opacity of a pixel, without its weight; and the slope of that.
struct OpacityPenalty {
  float value = 0, slope = 0;
};
inline OpacityPenalty penalty_of(const LossStep& loss, uint8_t byte, float alpha) {
  OpacityPenalty p;
  const uint32_t value = mask_byte(loss, byte);
  const float m = static_cast<float>(value) * (1.0f / 255.0f);
  if (loss.mask_mode == kMaskSegment) {
    const float background = 1.0f - mask_weight(loss, byte);
    p.slope = background * background;
    p.value = alpha * p.slope;
  } else if (loss.mask_mode == kMaskSegmentAndIgnore) {
    p.slope = value >= 128 && value <= 250 ? 1.0f : 0.0f;
    p.value = alpha * p.slope;
  } else if (loss.mask_mode == kMaskAlphaConsistent) {
    p.slope = alpha > m ? 1.0f : alpha < m ? -1.0f : 0.0f;
    p.value = std::abs(alpha - m);
  }
  return p;
}

/// How much a pixel counts for the crop box: 1, or less where its ray misses the box (or meets an
/// inverted one). TRAINING.md 4.6.
class PixelRays {
 public:
  PixelRays(const StepBlock& step, const CameraRecord& camera)
      : crop_(step.crop), camera_(camera), outside_(step.loss.outside_weight) {
    all_count_ = crop_.enabled == 0 || outside_ == 1.0f;
    for (int i = 0; i < 3; ++i) {
      const float* m = crop_.world_to_box + 4 * i;
      origin_[i] =
          m[0] * camera.centre[0] + m[1] * camera.centre[1] + m[2] * camera.centre[2] + m[3];
      for (int k = 0; k < 3; ++k) {
        const float* axis = camera.rotation + 3 * k;
        axes_[k][i] = m[0] * axis[0] + m[1] * axis[1] + m[2] * axis[2];
      }
    }
  }

  float weight(uint32_t x, uint32_t y) const {
    if (all_count_) return 1.0f;
    return meets_box(x, y) != (crop_.inverse != 0) ? 1.0f : outside_;
  }

 private:
  bool meets_box(uint32_t x, uint32_t y) const {
    const float u = (static_cast<float>(x) + 0.5f - camera_.cx) / camera_.fx;
    const float v = (static_cast<float>(y) + 0.5f - camera_.cy) / camera_.fy;
    float enter = -3.4e38f, leave = 3.4e38f;
    for (int i = 0; i < 3; ++i) {
      const float d = u * axes_[0][i] + v * axes_[1][i] + axes_[2][i];
      const float to_min = crop_.min[i] - origin_[i], to_max = crop_.max[i] - origin_[i];
      if (std::abs(d) < 1e-8f) {
        if (to_min > 0.0f || to_max < 0.0f) return false;
        continue;
      }
      const float a = to_min / d, b = to_max / d;
      enter = std::max(enter, std::min(a, b));
      leave = std::min(leave, std::max(a, b));
    }
    return leave >= enter && leave >= 0.0f;
  }

  const CropStep& crop_;
  const CameraRecord& camera_;
  float outside_;
  bool all_count_;
  float origin_[3];   // the camera's centre in the box's coordinates
  float axes_[3][3];  // the camera's x, y and z there
};

}  // namespace millrace::kernels
