// Workspace: the transient memory of a frame, with fixed capacities. Placement is never gated: the
// host may replace any of it at any time, whatever the gate says.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/splat_params.h"
#include "tensor/tensor.h"

namespace millrace {

/// Size of a frame in pixels.
struct FrameSize {
  uint32_t width = 0, height = 0;
};

/// Per row: what projection leaves for the later stages.
struct RowBuffers {
  uint64_t capacity = 0;
  Tensor projected;   // [capacity, 12] F32: Projected
  Tensor n_tiles;     // [capacity] U32
  Tensor depth_key;   // [capacity] U32
  Tensor first_slot;  // [capacity] U32
  Tensor row_ids;     // [capacity] U32: 0, 1, 2, ...
};

/// Per instance (one Gaussian in one tile).
struct InstanceBuffers {
  uint64_t capacity = 0;
  Tensor tile;          // [capacity] U32
  Tensor row;           // [capacity] U32
  Tensor sorted_slots;  // [capacity] U32
  Tensor histogram;     // sort scratch
  Tensor bands;         // BandTable
  Tensor carry;         // [2,256] F32: what one slice of a tile leaves for the next
  Tensor gradients;     // [capacity, 12] F32: InstanceGradient; absent when only rendering
};

/// What the frames of a run need beside an image.
struct PixelNeeds {
  bool gradients = false;
  bool depth = false;
  bool error_map = false;
  bool raw_gradient = false;
  bool weights = false;
  bool alpha_gradient = false;
  bool structure = false;  // of photographs: the ridge maps
  bool edge_loss = false;
};

/// Per pixel or tile, for frames up to a size.
struct PixelBuffers {
  PixelNeeds needs;
  uint64_t n_pixels = 0, n_tiles = 0;
  Tensor image;          // [3,H,W] F32
  Tensor depth_alpha;    // [2,H,W] F32, or one element when depth is not wanted
  Tensor transmittance;  // [tiles,256] F32
  Tensor last;           // [tiles,256] U32
  Tensor tile_ranges;    // [tiles,2] U32
  Tensor d_image;        // [3,H,W] F32; absent when only rendering
  Tensor loss_maps;      // [3,3,H,W] F32, [4,3,H,W] with d_raw; absent when only rendering
  Tensor loss_partials;  // [3 bands,kLossSums] F32; absent when only rendering
  Tensor error_map;      // [H,W] F32, or one element: none
  // Absent unless asked for.
  Tensor d_raw;        // [3,H,W] F32: gradient to an image before its exposure was corrected
  Tensor weight;       // [H,W] F32: how much each pixel counts in the loss
  Tensor d_alpha;      // [H,W] F32: gradient to the frame's opacity
  Tensor loss_totals;  // LossTotals; always there for training
};

/// What only a frame drawn in bands needs; made when the first one is recorded.
struct BandBuffers {
  uint64_t row_capacity = 0;
  Tensor tile_counts;  // [tiles] U32
  Tensor order;        // [row capacity] U32: rows by depth, from the forward pass to the backward
  Tensor n_tiles;      // [row capacity] U32, of the band
  Tensor sums;         // [row capacity, 12] F32: InstanceGradient of the bands so far
  Tensor visible;      // [row capacity] U32
};

struct Workspace {
  RowBuffers rows;
  InstanceBuffers instances;
  PixelBuffers pixels;
  BandBuffers bands;
};

RowBuffers make_row_buffers(Device& device, uint64_t capacity);
/// `n_tiles`: the most tiles of any frame that will use it.
InstanceBuffers make_instance_buffers(Device& device, uint64_t capacity, uint64_t n_tiles,
                                      bool with_gradients);
/// Device memory of one instance, the sort's histogram apart.
constexpr uint64_t instance_bytes(bool with_gradients) {
  return 3 * sizeof(uint32_t) + (with_gradients ? sizeof(InstanceGradient) : 0);
}
BandBuffers make_band_buffers(Device& device, uint64_t row_capacity, uint64_t n_tiles);
/// Buffers for every frame of `sizes`.
PixelBuffers make_pixel_buffers(Device& device, const std::vector<FrameSize>& sizes,
                                const PixelNeeds& needs);

/// Tiles of a frame.
inline uint32_t tiles_across(uint32_t pixels) { return (pixels + kTileSize - 1) / kTileSize; }

}  // namespace millrace
