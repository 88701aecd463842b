// A made frame for the blend kernels, and what they must give for one tile, in float64.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/splat_params.h"

namespace millrace::blend_twin {

struct Scene {
  uint32_t width = 0, height = 0, tiles_x = 0, tiles_y = 0;
  StepBlock step = {};
  Control control = {};
  std::vector<Projected> projected;    // [N], in no order of depth
  std::vector<uint32_t> instance_row;  // [instances]
  std::vector<uint32_t> sorted_slots;  // [instances], by tile, then depth
  std::vector<uint32_t> tile_ranges;   // [tiles,2]
  std::vector<float> d_image;          // [3,H,W]
  std::vector<float> error_map;        // [H,W]
};

/// `n` Gaussians of the sizes and opacities that trained scenes have. The same for the same
/// arguments.
Scene make_scene(uint32_t n, uint32_t width, uint32_t height);

using TileImage = std::array<double, 3 * kTileSize * kTileSize>;
constexpr uint32_t kGradientFields = 12;  // of InstanceGradient
using EntryGradient = std::array<double, kGradientFields>;

struct TileResult {
  TileImage image = {};                  // [3,16,16]
  std::vector<EntryGradient> gradients;  // one per entry of the tile
  uint64_t pairs = 0;                    // blended (entry, pixel) pairs
};
TileResult blend_tile(const Scene& scene, uint32_t tile);

}  // namespace millrace::blend_twin
