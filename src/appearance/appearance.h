// Appearance: the exposure correction of a run, between rendering and loss. Off, it is nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "appearance/bilateral_grid.h"
#include "appearance/ppisp.h"
#include "splat/workspace.h"

namespace millrace {

/// What a run's appearance begins with.
struct AppearanceSetup {
  bool ppisp = false;
  bool grids = false;
  GridMode grid_mode = GridMode::Affine;
  uint64_t grid_budget_bytes = 1ull << 30;  // on the device; other grids wait on the host
  std::vector<float> exposures;   // [F] of the training views, in powers of two of code values
  std::vector<uint32_t> cameras;  // [F] physical camera of each
  uint32_t n_cameras = 0;
  bool is_on() const { return ppisp || grids; }
};

/// One frame of a step; its number and its camera are in the step block.
struct AppearanceFrame {
  const Tensor& step;     // step block
  const Tensor& control;  // control record
  const Tensor& image;    // [3,H,W] F32, as rendered
  FrameSize size;
};

/// Everything here is queued, does nothing behind a closed gate, and writes what lasts in update()
/// alone.
class Appearance {
 public:
  Appearance() = default;  // off
  /// For frames of `sizes`.
  Appearance(Device& device, const AppearanceSetup& setup, const std::vector<FrameSize>& sizes);

  bool is_on() const { return ppisp_.is_on() || grids_.is_on(); }
  /// Physical camera of a training view.
  uint32_t camera_of(uint32_t frame) const { return is_on() ? cameras_[frame] : 0; }

  /// Before a step is recorded: what of this it uses, and has the grids of its view and of
  /// `upcoming`, the next steps' views, on the device. Never waits.
  void bind(const AppearanceStep& step, std::span<const uint32_t> upcoming);

  /// The image to compare with the photograph: corrected, in [0,1], or as rendered if this is off.
  const Tensor& forward(const AppearanceFrame& frame) const;
  /// From dLoss/dcorrected in pixels.d_image to dLoss/dimage in its place, that of the raw image
  /// (pixels.d_raw) added, and to the gradients that update() takes.
  void backward(const AppearanceFrame& frame, const PixelBuffers& pixels) const;
  /// Learns from the frame; part of the commit.
  void update(const Tensor& step, const Tensor& control) const;

  const Ppisp& ppisp() const { return ppisp_; }
  const BilateralGrids& grids() const { return grids_; }
  /// All that lasts, in the order in which it is hashed.
  std::vector<Tensor> state() const;

 private:
  bool uses_grid() const { return (modes_ & kAppearanceGrid) != 0; }
  BilateralGrids::Frame grid_frame(const AppearanceFrame& frame) const;

  Ppisp ppisp_;
  BilateralGrids grids_;
  uint32_t modes_ = 0;  // of the step that is recorded
  std::vector<uint32_t> cameras_;
  // [3,H,W] F32 of the largest frame: what each of the two gives.
  Tensor corrected_, shown_;
};

}  // namespace millrace
