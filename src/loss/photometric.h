// The photometric loss between a rendered image and a photograph.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace millrace {

/// A photograph on the device as planes: [3,H,W] U8 from interleaved pixels [H,W,3]. Queued.
Tensor upload_photograph(Device& device, std::span<const uint8_t> pixels, uint32_t width,
                         uint32_t height);

/// Where the loss reads and writes. All tensors may be larger than the frame.
struct PhotometricLoss {
  const Tensor& step;      // step block: the gate's transaction, ssim_weight, and `loss`
  const Tensor& control;   // metrics.{loss, l1, ssim, mse} are written here
  const Tensor& image;     // [3,H,W] F32
  const Tensor& target;    // [3,H,W] U8
  const Tensor& maps;      // [3,3,H,W] F32 scratch; [4,3,H,W] with `raw`
  const Tensor& partials;  // scratch
  const Tensor& d_image;   // [3,H,W] F32, written
  uint32_t width, height;
  // Null: without.
  const Tensor* raw = nullptr;     // [3,H,W] F32: SSIM's contrast and structure are of this image
  const Tensor* d_raw = nullptr;   // [3,H,W] F32, written: the gradient to `raw`
  const Tensor* weight = nullptr;  // [H,W] F32 of each pixel
  const Tensor* totals = nullptr;  // LossTotals: with `weight`, `base` and `weight` are read
  const Tensor* error_map = nullptr;  // [H,W] F32, written
  const Tensor* mask = nullptr;       // [H,W] U8 of the photograph, for `error_map`
  const Tensor* structure = nullptr;  // [H,W] U8 ridge map of the photograph, for `error_map`
  bool edge_loss = false;             // with `totals`: adds the edge loss, too
  bool has_penalty = false;           // with `totals`: adds totals.penalty, which is there already
};

/// (1 - lambda) L1 + lambda (1 - SSIM), both over the pixels at least 5 from every border (all
/// pixels of an image no larger than 10), and its gradient. Source: TRAINING.md 4.1.
///
/// With `weight`: sum_p w_p sum_c [(1 - lambda) |x - y| + lambda (1 - SSIM)] over 3 totals.base, of
/// all pixels (4.2, 4.4). totals.base is read on the device, so that weights may change at any
/// step.
///
/// With `raw`: SSIM is the luminance of `image` times the contrast and structure of `raw`, which an
/// exposure correction made `image` of (4.1); L1 is that of `image`. d_image and d_raw are the
/// gradients to the two, apart.
///
/// `error_map`: max(0, 1 - contrast x structure), mean of the channels, times the mask, over its
/// mean, times 1 + densify_structure_weight S (3.2). 0 where the loss does not count a pixel.
void photometric_loss(const PhotometricLoss& loss);

}  // namespace millrace
