// Allocation of a frame's transient memory.
#include "splat/workspace.h"

#include <algorithm>
#include <numeric>

namespace millrace {
namespace {

constexpr uint32_t kTilePixels = kTileSize * kTileSize;

}  // namespace

RowBuffers make_row_buffers(Device& device, uint64_t capacity) {
  RowBuffers rows;
  rows.capacity = capacity;
  rows.projected = Tensor::empty(device, Shape{capacity, 12}, Dtype::F32, "projected");
  rows.n_tiles = Tensor::empty(device, Shape{capacity}, Dtype::U32, "projected");
  rows.depth_key = Tensor::empty(device, Shape{capacity}, Dtype::U32, "projected");
  rows.first_slot = Tensor::empty(device, Shape{capacity}, Dtype::U32, "projected");
  rows.row_ids = Tensor::empty(device, Shape{capacity}, Dtype::U32, "projected");
  constexpr uint64_t kAtOnce = 1u << 16;
  std::vector<uint32_t> ids(std::min(capacity, kAtOnce));
  for (uint64_t begin = 0; begin < capacity; begin += kAtOnce) {
    const uint64_t end = std::min(capacity, begin + kAtOnce);
    ids.resize(end - begin);
    std::iota(ids.begin(), ids.end(), static_cast<uint32_t>(begin));
    rows.row_ids.slice(0, static_cast<int64_t>(begin), static_cast<int64_t>(end)).upload(ids);
  }
  return rows;
}

InstanceBuffers make_instance_buffers(Device& device, uint64_t capacity, uint64_t n_tiles,
                                      bool with_gradients) {
  InstanceBuffers instances;
  capacity = std::max<uint64_t>(capacity, 1);
  instances.capacity = capacity;
  const auto words = [&](uint64_t n) {
    return Tensor::empty(device, Shape{n}, Dtype::U32, "instances");
  };
  instances.tile = words(capacity);
  instances.row = words(capacity);
  instances.sorted_slots = words(capacity);
  instances.histogram = words((capacity / kInstanceSortBlock + 1) * n_tiles);
  instances.bands = words(sizeof(BandTable) / sizeof(uint32_t));
  instances.carry = Tensor::empty(device, Shape{2, kTilePixels}, Dtype::F32, "instances");
  const uint64_t n_records = with_gradients ? capacity : 1;
  instances.gradients = Tensor::empty(device, Shape{n_records, 12}, Dtype::F32, "instances");
  return instances;
}

BandBuffers make_band_buffers(Device& device, uint64_t row_capacity, uint64_t n_tiles) {
  BandBuffers bands;
  bands.row_capacity = row_capacity;
  const auto words = [&](uint64_t n) {
    return Tensor::empty(device, Shape{n}, Dtype::U32, "bands");
  };
  bands.tile_counts = words(n_tiles);
  bands.n_tiles = words(row_capacity);
  bands.visible = words(row_capacity);
  bands.sums = Tensor::empty(device, Shape{row_capacity, 12}, Dtype::F32, "bands");
  return bands;
}

PixelBuffers make_pixel_buffers(Device& device, const std::vector<FrameSize>& sizes,
                                const PixelNeeds& needs) {
  PixelBuffers pixels;
  pixels.needs = needs;
  uint64_t n_bands = 1;
  for (const FrameSize& size : sizes) {
    pixels.n_pixels = std::max(pixels.n_pixels, uint64_t{size.width} * size.height);
    pixels.n_tiles =
        std::max(pixels.n_tiles, uint64_t{tiles_across(size.width)} * tiles_across(size.height));
    n_bands = std::max<uint64_t>(n_bands, (size.height + kLossBand - 1) / kLossBand);
  }
  const auto floats = [&](uint64_t n) {
    return Tensor::empty(device, Shape{n}, Dtype::F32, "pixels");
  };
  const auto words = [&](uint64_t n) {
    return Tensor::empty(device, Shape{n}, Dtype::U32, "pixels");
  };
  pixels.image = floats(3 * pixels.n_pixels);
  pixels.depth_alpha = floats(needs.depth ? 2 * pixels.n_pixels : 1);
  pixels.transmittance = floats(pixels.n_tiles * kTilePixels);
  pixels.last = words(pixels.n_tiles * kTilePixels);
  pixels.tile_ranges = words(pixels.n_tiles * 2);
  pixels.error_map = floats(needs.error_map ? pixels.n_pixels : 1);
  if (!needs.gradients) return pixels;
  pixels.d_image = floats(3 * pixels.n_pixels);
  pixels.loss_maps = floats((needs.raw_gradient ? 12 : 9) * pixels.n_pixels);
  pixels.loss_partials = floats(3 * n_bands * kLossSums);
  pixels.loss_totals = floats(sizeof(LossTotals) / sizeof(float));
  if (needs.raw_gradient) pixels.d_raw = floats(3 * pixels.n_pixels);
  if (needs.weights) pixels.weight = floats(pixels.n_pixels);
  if (needs.alpha_gradient) pixels.d_alpha = floats(pixels.n_pixels);
  return pixels;
}

}  // namespace millrace
