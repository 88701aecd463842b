// What pixels count in the loss beside their difference: masks, the crop box, thin structures,
// edges and the frame's opacity.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace millrace {

/// Where pixel_weights() reads and writes. Tensors may be larger than the frame.
struct PixelWeights {
  const Tensor& step;       // step block: `loss`, `crop` and `view`
  const Tensor& control;    // the gate
  const Tensor& cameras;    // camera table
  const Tensor* mask;       // [H,W] U8 of the photograph; null: none
  const Tensor* structure;  // [H,W] U8 of ridge_map(); null: none
  const Tensor& weight;     // [H,W] F32, written
  const Tensor& totals;     // LossTotals: base and weight are written
  uint32_t width, height;   // px
};

/// The weight of each pixel in the photometric loss and the edge loss: mask x crop box x
/// (1 + structure_weight S). Without a mask that weighs, pixels less than 5 from a border have none
/// (unless the image is no larger than 10). totals.base sums the weights without S, in a fixed
/// order: the loss is divided by it. Source: TRAINING.md 4.2, 4.4, 4.6.
void pixel_weights(const PixelWeights& weights);

/// Where a photograph has thin structures: [H,W] U8, round(63 min(S, 4)) with S the ridge response
/// over its mean; 0 everywhere in a constant image. `target`: [3,H,W] U8. Source: TRAINING.md 4.3.
Tensor ridge_map(const Tensor& target, uint32_t width, uint32_t height);

/// Where edge_loss() reads and writes.
struct EdgeLoss {
  const Tensor& step;      // step block: loss.edge_weight
  const Tensor& control;   // the gate
  const Tensor& image;     // [3,H,W] F32
  const Tensor& target;    // [3,H,W] U8
  const Tensor* weight;    // [H,W] F32; null: all away from the border count 1
  const Tensor& scratch;   // [2,H,W] F32
  const Tensor& d_image;   // [3,H,W] F32: the gradient is added
  const Tensor& totals;    // LossTotals: edge and edge_weight are written
  uint32_t width, height;  // px
};

/// edge_weight / (2 sum m) x sum of m (|gx| + |gy|), where g is the Sobel gradient of the
/// difference of luminance and m a pixel's weight, 0 beside pixels without weight. Source:
/// TRAINING.md 4.5.
void edge_loss(const EdgeLoss& loss);

/// Where opacity_penalty() reads and writes.
struct OpacityPenalty {
  const Tensor& step;           // step block: `loss`, `crop` and `view`
  const Tensor& control;        // the gate
  const Tensor& cameras;        // camera table
  const Tensor* mask;           // [H,W] U8; null: no penalty
  const Tensor& transmittance;  // [tiles,256] F32 of the frame
  const Tensor& d_alpha;        // [H,W] F32, written: the gradient to the frame's opacity
  const Tensor& totals;         // LossTotals: penalty is written
  uint32_t width, height;       // px
};

/// What the mask's mode has against the frame's opacity, as a mean over all pixels.
/// Source: TRAINING.md 4.6.
void opacity_penalty(const OpacityPenalty& penalty);

}  // namespace millrace
