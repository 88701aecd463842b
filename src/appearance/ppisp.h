// PPISP: what a camera and each of its exposures do to an image, learnt beside the Gaussians
// (TRAINING.md 5.3). Exposure acts on the code values of the photograph, not on linear light.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/appearance_params.h"
#include "kernels/splat_params.h"
#include "tensor/tensor.h"

namespace millrace {

/// The parameters of F frames and C physical cameras, in the layout of kernels/appearance_params.h,
/// with Adam moments, and memory to work in.
struct Ppisp {
  uint32_t n_frames = 0, n_cameras = 0;
  Tensor values, first_moment, second_moment;  // [ppisp_floats()] F32
  Tensor gradient;                             // [kPpispGradients] F32, of the frame in flight
  Tensor partials;                             // [bands,kPpispSums] F32
  bool is_on() const { return n_frames > 0; }
};

/// The identity, but for the exposures [F], in powers of two of code values. `max_height`: of any
/// frame, px.
Ppisp make_ppisp(Device& device, const std::vector<float>& exposures, uint32_t n_cameras,
                 uint32_t max_height);

/// One frame; its number and its camera are in the step block.
struct PpispFrame {
  const Tensor& step;     // step block
  const Tensor& control;  // control record
  const Tensor& image;    // [3,H,W] F32, as rendered
  uint32_t width, height;
};

/// Writes the corrected image [3,H,W], in [0,1]. All of these are queued, and do nothing behind a
/// closed gate.
void ppisp_forward(const Ppisp& ppisp, const PpispFrame& frame, const Tensor& corrected);
/// From dLoss/dcorrected to dLoss/dimage in place, and to ppisp.gradient.
void ppisp_backward(const Ppisp& ppisp, const PpispFrame& frame, const Tensor& d_image);
/// One Adam step from ppisp.gradient, regularisers included, of all frames and cameras.
void ppisp_update(const Ppisp& ppisp, const Tensor& step, const Tensor& control);

}  // namespace millrace
