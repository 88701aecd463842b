// The exposure correction of a run: PPISP, then the grid of each photograph.
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
  if (setup.ppisp) {
    ppisp_ = make_ppisp(device, setup.exposures, setup.n_cameras, most_rows);
    corrected_ = Tensor::empty(device, Shape{3 * most_pixels}, Dtype::F32, "appearance");
  }
  if (setup.grids) {
    const auto n_images = static_cast<uint32_t>(setup.exposures.size());
    grids_ = BilateralGrids(device, setup.grid_mode, n_images, setup.grid_budget_bytes);
    shown_ = Tensor::empty(device, Shape{3 * most_pixels}, Dtype::F32, "appearance");
  }
}

void Appearance::bind(const AppearanceStep& step, std::span<const uint32_t> upcoming) {
  modes_ = step.modes;
  if (uses_grid()) grids_.bind(step.frame, upcoming);
}

BilateralGrids::Frame Appearance::grid_frame(const AppearanceFrame& frame) const {
  return {frame.step, frame.control, ppisp_.is_on() ? corrected_ : frame.image, frame.size.width,
          frame.size.height};
}

const Tensor& Appearance::forward(const AppearanceFrame& frame) const {
  if (ppisp_.is_on()) ppisp_forward(ppisp_, ppisp_frame(frame), corrected_);
  const BilateralGrids::Frame grid = grid_frame(frame);
  if (!uses_grid()) return grid.image;
  grids_.forward(grid, shown_);
  return shown_;
}

void Appearance::backward(const AppearanceFrame& frame, const PixelBuffers& pixels) const {
  if (!is_on()) return;
  if (uses_grid()) grids_.backward(grid_frame(frame), pixels.d_image);
  if (ppisp_.is_on()) ppisp_backward(ppisp_, ppisp_frame(frame), pixels.d_image);
  const auto n = static_cast<int64_t>(uint64_t{3} * frame.size.width * frame.size.height);
  add_(pixels.d_image.slice(0, 0, n), pixels.d_raw.slice(0, 0, n));
}

void Appearance::update(const Tensor& step, const Tensor& control) const {
  if (uses_grid()) grids_.update(step, control);
  if (ppisp_.is_on()) ppisp_update(ppisp_, step, control);
}

std::vector<Tensor> Appearance::state() const {
  std::vector<Tensor> state;
  if (ppisp_.is_on()) state = {ppisp_.values, ppisp_.first_moment, ppisp_.second_moment};
  if (grids_.is_on()) {
    for (const Tensor& tensor : grids_.state()) state.push_back(tensor);
  }
  return state;
}

}  // namespace millrace
