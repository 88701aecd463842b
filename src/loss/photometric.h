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
  const Tensor& step;      // step block: the gate's transaction, and ssim_weight
  const Tensor& control;   // metrics.{loss, l1, ssim} are written here
  const Tensor& image;     // [3,H,W] F32
  const Tensor& target;    // [3,H,W] U8
  const Tensor& maps;      // [3,3,H,W] F32 scratch
  const Tensor& partials;  // scratch
  const Tensor& d_image;   // [3,H,W] F32, written
  uint32_t width, height;
};

/// (1 - lambda) L1 + lambda (1 - SSIM), both over the pixels at least 5 from every border (all
/// pixels of an image no larger than 10), and its gradient. Source: TRAINING.md 4.1.
void photometric_loss(const PhotometricLoss& loss);

}  // namespace millrace
