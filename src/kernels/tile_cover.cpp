// The exact tile test (TRAINING.md 2.2): the ellipse is cut into strips of one tile, along the
// shorter side of its box, and each strip covers one interval of tiles.
#include "kernels/tile_cover.h"

#include <algorithm>
#include <cmath>

namespace millrace::kernels {
namespace {

// Covers rounding of the extents and interval ends; a tile too many costs little, one too few is an
// error.
constexpr float kSlack = 1.0f / 64.0f;
constexpr int kTile = kTileSize;

// Tiles of `n` whose pixel centres (integers here) reach into [low, high]: [first, last).
struct Interval {
  int first, last;
};
Interval tiles_between(float low, float high, int n) {
  const float limit = static_cast<float>(n) * kTileSize;
  const float from = std::clamp(low - kSlack, -1.0f, limit);
  const float to = std::clamp(high + kSlack, -1.0f, limit);
  // Rounded up and down; without SSE4.1 the library's functions are slow.
  int first_pixel = static_cast<int>(from), last_pixel = static_cast<int>(to);
  first_pixel += static_cast<float>(first_pixel) < from ? 1 : 0;
  last_pixel -= static_cast<float>(last_pixel) > to ? 1 : 0;
  if (first_pixel > last_pixel || last_pixel < 0 || first_pixel >= n * kTile) return {0, 0};
  const int first = std::max(0, first_pixel) / kTile;
  const int last = last_pixel / kTile + 1;
  return {first, std::min(last, n)};
}

// A quadratic form a u^2 + 2 b u v + c v^2 <= r2 of determinant `det`, seen along strips of v.
struct Form {
  float a, b, c, det, r2, extent_u, extent_v;
};

// The interval of u inside the form for v in [v0, v1]; false if the strip misses it.
bool strip_interval(const Form& f, float v0, float v1, float& low, float& high) {
  v0 = std::max(v0, -f.extent_v);
  v1 = std::min(v1, f.extent_v);
  if (v0 > v1) return false;
  // The extreme u lie at v = -+ b extent_u / c; outside the strip, the nearest strip end decides.
  const float v_extreme = -f.b * f.extent_u / f.c;
  const float v_high = std::clamp(v_extreme, v0, v1), v_low = std::clamp(-v_extreme, v0, v1);
  const auto root = [&](float v) { return std::sqrt(std::max(f.a * f.r2 - f.det * v * v, 0.0f)); };
  low = (-f.b * v_low - root(v_low)) / f.a;
  high = (-f.b * v_high + root(v_high)) / f.a;
  return true;
}

}  // namespace

__attribute__((noinline)) uint32_t cover_tiles(const Projected& g, uint32_t tiles_x,
                                               uint32_t tiles_y, uint32_t* tiles) {
  const float r2 = std::max(2.0f * std::log(255.0f * g.opacity), 0.0f);
  // Pixel centres at integers.
  const float x = g.x - 0.5f, y = g.y - 0.5f;
  const int nx = static_cast<int>(tiles_x), ny = static_cast<int>(tiles_y);
  const Interval box_x = tiles_between(x - g.extent_x, x + g.extent_x, nx);
  const Interval box_y = tiles_between(y - g.extent_y, y + g.extent_y, ny);
  if (box_x.first >= box_x.last || box_y.first >= box_y.last) return 0;

  const bool by_rows = box_y.last - box_y.first <= box_x.last - box_x.first;
  const float xx = g.a * g.a, xy = g.a * g.b, yy = g.b * g.b + g.c * g.c, det = xx * (g.c * g.c);
  const Form form = by_rows ? Form{xx, xy, yy, det, r2, g.extent_x, g.extent_y}
                            : Form{yy, xy, xx, det, r2, g.extent_y, g.extent_x};
  const float centre_u = by_rows ? x : y, centre_v = by_rows ? y : x;
  const Interval strips = by_rows ? box_y : box_x, across = by_rows ? box_x : box_y;
  uint32_t n = 0;
  for (int strip = strips.first; strip < strips.last; ++strip) {
    const float v0 = static_cast<float>(strip) * kTileSize - centre_v - kSlack;
    const float v1 = v0 + (kTileSize - 1) + 2.0f * kSlack;
    float low, high;
    if (!strip_interval(form, v0, v1, low, high)) continue;
    Interval hit = tiles_between(low + centre_u, high + centre_u, by_rows ? nx : ny);
    hit.first = std::max(hit.first, across.first);
    hit.last = std::min(hit.last, across.last);
    for (int i = hit.first; i < hit.last; ++i, ++n) {
      if (!tiles) continue;
      const int tile = by_rows ? strip * nx + i : i * nx + strip;
      tiles[n] = static_cast<uint32_t>(tile);
    }
  }
  // By columns they came out of order.
  if (tiles && !by_rows) std::sort(tiles, tiles + n);
  return n;
}

}  // namespace millrace::kernels
