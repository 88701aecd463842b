// What a pass over a frame works on: the whole of it, or one of its bands.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/splat_params.h"
#include "kernels/tile_cover.h"

namespace millrace::kernels {

/// The band of this pass; of a frame that is not divided, one band with all of it. Only for
/// accepted frames, whose instances are counted in 32 bits.
inline Band band_of(const FrameParams& params, const Control& control, const BandTable& table) {
  if (params.n_bands <= 1) {
    const auto instances = static_cast<uint32_t>(control.counts.instances);
    return {0, params.tiles_x * params.tiles_y, 0, instances, 1, 1, 0};
  }
  const Band& band = table.bands[params.band];
  return params.backward ? table.bands[band.mirror] : band;
}

/// The tiles of one Gaussian after another; takes memory for a frame's tiles when first used.
class TileList {
 public:
  explicit TileList(const FrameParams& params) : params_(params) {}

  /// In rising order; valid until the next call.
  std::span<const uint32_t> of(const Projected& gaussian) {
    tiles_.resize(uint64_t{params_.tiles_x} * params_.tiles_y);
    const uint32_t n = cover_tiles(gaussian, params_.tiles_x, params_.tiles_y, tiles_.data());
    return {tiles_.data(), n};
  }
  /// Those inside `band`.
  std::span<const uint32_t> of(const Projected& gaussian, const Band& band) {
    const auto all = of(gaussian);
    return {std::ranges::lower_bound(all, band.first_tile),
            std::ranges::lower_bound(all, band.last_tile)};
  }

 private:
  const FrameParams& params_;
  std::vector<uint32_t> tiles_;
};

}  // namespace millrace::kernels
