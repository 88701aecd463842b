// Rendering one photograph of the synthetic capture, with its ground truth.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/capture_camera.h"
#include "synth/scene.h"

namespace millrace::synth {

/// Everything known about one photograph; row-major from the top left.
struct ViewPixels {
  std::vector<uint8_t> photo;    // [H,W,3] with exposure, white balance, vignetting and distractor
  std::vector<uint8_t> neutral;  // [H,W,3] without them
  std::vector<uint16_t>
      depth;  // [H,W] z-depth at the pixel centre in 1/1000 unit, 0 = none or too far
  std::vector<uint8_t> wire;  // [H,W] 255 x the share of the pixel that wires cover
  std::vector<uint8_t>
      keep;  // [H,W] 255 = no distractor or shadow of one, else 0; empty without masks
};

/// z-depth units per world unit in ViewPixels::depth.
inline constexpr float kDepthScale = 1000.0f;

/// The sRGB output curve: linear light (clipped to 0..1) to 0..1.
float srgb_from_linear(float linear);

/// Takes shot number `view`. A pure function of its arguments, whatever the number of threads.
ViewPixels render_view(const Scene& scene, const CaptureOptions& options, const Lens& lens,
                       const Vignette& vignette, const Shot& shot, uint32_t view);

}  // namespace millrace::synth
