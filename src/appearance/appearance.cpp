// The exposure correction of a run.
#include "appearance/appearance.h"

#include <algorithm>

#include "tensor/ops.h"

namespace millrace {
namespace {

PpispFrame ppisp_frame(const AppearanceFrame& frame) {
  return {frame.step, frame.control, frame.image, frame.size.width, frame.size.height};
}

}  // namespace

Appearance::Appearance(Device& device, const AppearanceSetup& setup,
                       const std::vector<FrameSize>& sizes) {
  if (!setup.is_on()) return;
  uint64_t most_pixels = 0;
  uint32_t most_rows = 0;
  for (const FrameSize& size : sizes) {
    most_pixels = std::max(most_pixels, uint64_t{size.width} * size.height);
    most_rows = std::max(most_rows, size.height);
  }
  cameras_ = setup.cameras;
  ppisp_ = make_ppisp(device, setup.exposures, setup.n_cameras, most_rows);
  corrected_ = Tensor::empty(device, Shape{3 * most_pixels}, Dtype::F32, "appearance");
}

const Tensor& Appearance::forward(const AppearanceFrame& frame) const {
  if (!is_on()) return frame.image;
  ppisp_forward(ppisp_, ppisp_frame(frame), corrected_);
  return corrected_;
}

void Appearance::backward(const AppearanceFrame& frame, const PixelBuffers& pixels) const {
  if (!is_on()) return;
  ppisp_backward(ppisp_, ppisp_frame(frame), pixels.d_image);
  const auto n = static_cast<int64_t>(uint64_t{3} * frame.size.width * frame.size.height);
  add_(pixels.d_image.slice(0, 0, n), pixels.d_raw.slice(0, 0, n));
}

void Appearance::update(const Tensor& step, const Tensor& control) const {
  if (is_on()) ppisp_update(ppisp_, step, control);
}

std::vector<Tensor> Appearance::state() const {
  if (!is_on()) return {};
  return {ppisp_.values, ppisp_.first_moment, ppisp_.second_moment};
}

}  // namespace millrace
