// PPISP's state and launches.
#include "appearance/ppisp.h"

#include <algorithm>
#include <cmath>

#include "tensor/launch.h"

namespace millrace {
namespace {

PpispParams params_of(const Ppisp& ppisp, uint32_t width, uint32_t height) {
  return {width, height, ppisp.n_frames, ppisp.n_cameras};
}
uint64_t band_count(uint32_t height) { return (height + kPpispBand - 1) / kPpispBand; }

/// The raw value of which the softplus is `value`.
float inverse_softplus(double value) { return static_cast<float>(std::log(std::expm1(value))); }

}  // namespace

Ppisp make_ppisp(Device& device, const std::vector<float>& exposures, uint32_t n_cameras,
                 uint32_t max_height) {
  Ppisp ppisp;
  ppisp.n_frames = static_cast<uint32_t>(exposures.size());
  ppisp.n_cameras = n_cameras;
  const PpispParams params = params_of(ppisp, 0, 0);
  std::vector<float> values(ppisp_floats(params));
  std::copy(exposures.begin(), exposures.end(), values.begin());
  for (uint32_t camera = 0; camera < n_cameras; ++camera) {
    float* crf = values.data() + ppisp_crf_at(params, camera);
    for (uint32_t c = 0; c < 3; ++c) {
      // Toe, shoulder and gamma of 1: 0.3, 0.3 and 0.1 are added to the softplus.
      crf[4 * c] = crf[4 * c + 1] = inverse_softplus(0.7);
      crf[4 * c + 2] = inverse_softplus(0.9);
    }
  }
  const Shape shape{values.size()};
  constexpr const char* kLabel = "appearance";
  ppisp.values = Tensor::from_host(device, values, shape, kLabel);
  ppisp.first_moment = Tensor::zeros(device, shape, Dtype::F32, kLabel);
  ppisp.second_moment = Tensor::zeros(device, shape, Dtype::F32, kLabel);
  ppisp.gradient = Tensor::empty(device, Shape{kPpispGradients}, Dtype::F32, kLabel);
  ppisp.partials =
      Tensor::empty(device, Shape{band_count(max_height), kPpispSums}, Dtype::F32, kLabel);
  return ppisp;
}

void ppisp_forward(const Ppisp& ppisp, const PpispFrame& frame, const Tensor& corrected) {
  launch(ppisp.values.device(), KernelId::ppisp_forward, uint64_t{frame.width} * frame.height,
         {read(frame.step), read(frame.control), read(ppisp.values), read(frame.image),
          write(corrected)},
         params_of(ppisp, frame.width, frame.height));
}

void ppisp_backward(const Ppisp& ppisp, const PpispFrame& frame, const Tensor& d_image) {
  Device& device = ppisp.values.device();
  const PpispParams params = params_of(ppisp, frame.width, frame.height);
  launch(device, KernelId::ppisp_backward, band_count(frame.height),
         {read(frame.step), read(frame.control), read(ppisp.values), read(frame.image),
          update(d_image), write(ppisp.partials)},
         params);
  launch(device, KernelId::ppisp_gradient, 1,
         {read(frame.step), read(frame.control), read(ppisp.values), read(ppisp.partials),
          write(ppisp.gradient)},
         params);
}

void ppisp_update(const Ppisp& ppisp, const Tensor& step, const Tensor& control) {
  const uint64_t lanes =
      uint64_t{1 + kPpispColour} * ppisp.n_frames + uint64_t{9} * ppisp.n_cameras;
  launch(ppisp.values.device(), KernelId::ppisp_update, lanes,
         {read(step), read(control), read(ppisp.gradient), update(ppisp.values),
          update(ppisp.first_moment), update(ppisp.second_moment)},
         params_of(ppisp, 0, 0));
}

}  // namespace millrace
