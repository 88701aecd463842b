// Counting blended pairs: the blend's decisions again, in scalar arithmetic.
#include "bench/pair_count.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"

namespace millrace {
namespace {

constexpr int kTile = kTileSize;
constexpr uint32_t kTilePixels = kTileSize * kTileSize;

// The pixel columns (or rows) of a tile whose centres lie within `extent` of `centre`.
struct PixelRange {
  int first, last;  // [first, last)
};
PixelRange pixels_within(float centre, float extent, int tile_begin) {
  const float low = std::ceil(centre - extent - 0.5f), high = std::floor(centre + extent - 0.5f);
  const auto begin = static_cast<float>(tile_begin);
  return {static_cast<int>(std::clamp(low - begin, 0.0f, static_cast<float>(kTile))),
          static_cast<int>(std::clamp(high - begin + 1.0f, 0.0f, static_cast<float>(kTile)))};
}

void count_entry(const Projected& g, int x0, int y0, const uint32_t* last, uint32_t index,
                 PairCount& count) {
  const PixelRange columns = pixels_within(g.x, g.extent_x, x0);
  const PixelRange rows = pixels_within(g.y, g.extent_y, y0);
  // alpha >= 1/255 without an exponential in every pixel.
  const float most = std::log(g.opacity / kAlphaMin);
  for (int y = rows.first; y < rows.last; ++y) {
    const float dy = g.y - (static_cast<float>(y0 + y) + 0.5f);
    for (int x = columns.first; x < columns.last; ++x) {
      if (last[y * kTile + x] <= index) continue;
      const float dx = g.x - (static_cast<float>(x0 + x) + 0.5f);
      const float y1 = g.a * dx + g.b * dy, y2 = g.c * dy;
      ++count.boxed;
      count.blended += 0.5f * (y1 * y1 + y2 * y2) <= most;
    }
  }
}

}  // namespace

PairCount count_pairs(const FrameLists& frame) {
  const uint32_t tiles_x = (frame.width + kTileSize - 1) / kTileSize;
  const uint32_t tiles_y = (frame.height + kTileSize - 1) / kTileSize;
  std::vector<PairCount> counts(uint64_t{tiles_x} * tiles_y);
  parallel_blocks(counts.size(), [&](uint64_t tile) {
    const uint32_t begin = frame.tile_ranges[2 * tile], end = frame.tile_ranges[2 * tile + 1];
    const uint32_t* last = frame.last + tile * kTilePixels;
    const auto x0 = static_cast<int>(tile % tiles_x * kTileSize);
    const auto y0 = static_cast<int>(tile / tiles_x * kTileSize);
    uint32_t furthest = 0;
    for (uint32_t i = 0; i < kTilePixels; ++i) {
      furthest = std::max(furthest, last[i]);
      counts[tile].walked += last[i];
    }
    for (uint32_t index = 0; index < std::min(furthest, end - begin); ++index) {
      const uint32_t row = frame.instance_row[frame.sorted_slots[begin + index]];
      count_entry(frame.projected[row], x0, y0, last, index, counts[tile]);
    }
  });
  PairCount total;
  for (const PairCount& count : counts) {
    total.blended += count.blended;
    total.boxed += count.boxed;
    total.walked += count.walked;
  }
  return total;
}

}  // namespace millrace
