// A small training step on host arrays, for any table of hot kernels: each function by itself, on
// inputs that the tests may spoil.
#pragma once

#include <vector>

#include "kernels/isa/hot.h"

namespace millrace::test {

/// All arrays of one step on one view. The frame ends inside a tile, the rows inside a block and
/// inside a vector of every width.
struct HotFrame {
  static constexpr uint32_t kWidthPx = 43, kHeightPx = 37, kTilesX = 3, kTilesY = 3;
  static constexpr uint32_t kTiles = kTilesX * kTilesY, kPixels = kWidthPx * kHeightPx;
  static constexpr uint32_t kRows = 299, kRestLanes = 45;

  StepBlock step = {};
  CameraRecord camera = {};
  // Parameters and moments, [ceil(N/32), lanes, 32].
  std::vector<float> geometry, geometry_first, geometry_second, sh_rest, sh_first, sh_second;
  // Projection, [N].
  std::vector<Projected> projected;
  std::vector<uint32_t> n_tiles, depth_key;
  // Lists of the tiles; slots follow the rows.
  std::vector<uint32_t> first_slot, instance_row, sorted_slots, tile_ranges;
  // Blending and loss.
  std::vector<float> image, depth_alpha, transmittance, maps, sums, d_image, error;
  std::vector<uint32_t> last;
  std::vector<uint8_t> target;
  // Gradients, by slot and by row.
  std::vector<InstanceGradient> gradients;
  std::vector<float> d_geometry, d_sh_rest, statistics;
  uint32_t skipped = 0;

  /// Overlapping Gaussians of many sizes, a target, and everything up to `d_geometry` and
  /// `d_sh_rest` as `hot` makes it.
  static HotFrame make(const kernels::HotKernels& hot);

  void project(const kernels::HotKernels& hot);
  /// The tiles' lists from the projection, by plain loops.
  void list();
  void blend_forward(const kernels::HotKernels& hot);
  void photometric_forward(const kernels::HotKernels& hot);
  void photometric_backward(const kernels::HotKernels& hot);
  void blend_backward(const kernels::HotKernels& hot);
  /// Instance gradients to `d_geometry` and `d_sh_rest`, which begin at zero.
  void accumulate(const kernels::HotKernels& hot);
  /// Adam from `d_geometry` and `d_sh_rest`; sets `skipped`.
  void adam(const kernels::HotKernels& hot);
  /// Both at once, from the instance gradients; sets `skipped` and `statistics`.
  void backward_adam(const kernels::HotKernels& hot);

 private:
  kernels::BlendArgs blend_args();
  kernels::PhotometricArgs photometric_args();
  kernels::BackwardArgs backward_args();
};

}  // namespace millrace::test
