// The exact tile test (TRAINING.md 2.2): the ellipse is cut into strips, the rows of tiles, and
// each strip covers one interval of tiles. A strip is a lane. Strips along the shorter side would
// be fewer for tall Gaussians, but then tiles come out of order, and bands rely on the order.
#include "kernels/isa/tile_cover.h"

#include "kernels/isa/vector.h"

namespace millrace::kernels::MILLRACE_ISA {
namespace {

// Covers rounding of the extents and interval ends; a tile too many costs little, one too few is an
// error.
constexpr float kSlack = 1.0f / 64.0f;
constexpr int kTileShift = 4;
constexpr float kTile = kTileSize;
static_assert(kTileSize == 1u << kTileShift);
constexpr float kTwoLn2 = 1.3862943611198906f;

struct Intervals {
  vi first, last;
};

// Tiles of `n` whose pixel centres (integers here) reach into [low, high]: [first, last), or [0,
// 0).
Intervals tiles_between(vf low, vf high, vi n) {
  const vf limit = __builtin_convertvector(n, vf) * kTile;
  const vf from = min(max(low - kSlack, broadcast(-1.0f)), limit);
  const vf to = min(max(high + kSlack, broadcast(-1.0f)), limit);
  // Rounded up and down; a comparison that holds is -1.
  vi first_pixel = __builtin_convertvector(from, vi), last_pixel = __builtin_convertvector(to, vi);
  first_pixel -= __builtin_convertvector(first_pixel, vf) < from;
  last_pixel += __builtin_convertvector(last_pixel, vf) > to;
  const vi empty = (first_pixel > last_pixel) | (last_pixel < 0) | (first_pixel >= n << kTileShift);
  const vi inside = first_pixel > 0 ? first_pixel : vi{};
  const vi last = (last_pixel >> kTileShift) + 1;
  return {(inside >> kTileShift) & ~empty, (last < n ? last : n) & ~empty};
}

// The ellipse xx u^2 + 2 xy u v + yy v^2 <= r2 of determinant `det`, u and v from its centre.
struct Form {
  float xx, xy, yy, det, r2, extent_u, extent_v;
};

// The tiles across that kWidth strips of the form cover, the first of which begins at `v_begin`
// from the centre; `centre_u` of `n` tiles.
Intervals cover_strips(const Form& f, float v_begin, float centre_u, int n) {
  vf v0 = fma(__builtin_convertvector(first_lanes(), vf), broadcast(kTile),
              broadcast(v_begin - kSlack));
  vf v1 = v0 + (kTile - 1 + 2 * kSlack);
  v0 = max(v0, broadcast(-f.extent_v));
  v1 = min(v1, broadcast(f.extent_v));
  // The extreme u lie at v = -+ xy extent_u / yy; outside the strip, the nearest strip end decides.
  const float v_extreme = -f.xy * f.extent_u / f.yy, inv_xx = 1.0f / f.xx;
  const vf v_high = min(max(broadcast(v_extreme), v0), v1);
  const vf v_low = min(max(broadcast(-v_extreme), v0), v1);
  const vf whole = broadcast(f.xx * f.r2), det = broadcast(f.det), xy = broadcast(f.xy);
  const vf low = -(xy * v_low + sqrt(max(whole - det * v_low * v_low, vf{}))) * inv_xx;
  const vf high = (sqrt(max(whole - det * v_high * v_high, vf{})) - xy * v_high) * inv_xx;
  const Intervals hit = tiles_between(low + centre_u, high + centre_u, broadcast_int(n));
  const vi missed = v0 > v1;
  return {hit.first & ~missed, hit.last & ~missed};
}

}  // namespace

uint32_t cover_tiles(const Projected& g, uint32_t tiles_x, uint32_t tiles_y, uint32_t* tiles) {
  // Pixel centres at integers. Lane 0 is x, lane 1 is y.
  const float x = g.x - 0.5f, y = g.y - 0.5f;
  const int nx = static_cast<int>(tiles_x), ny = static_cast<int>(tiles_y);
  const Intervals box = tiles_between(vf{x - g.extent_x, y - g.extent_y},
                                      vf{x + g.extent_x, y + g.extent_y}, vi{nx, ny});
  const int left = box.first[0], right = box.last[0], top = box.first[1], bottom = box.last[1];
  if (left >= right || top >= bottom) return 0;

  const float r2 = max(kTwoLn2 * log2(broadcast(255.0f * g.opacity)), vf{})[0];
  const float xx = g.a * g.a, xy = g.a * g.b, yy = g.b * g.b + g.c * g.c;
  const Form form = {xx, xy, yy, xx * (g.c * g.c), r2, g.extent_x, g.extent_y};
  uint32_t n = 0;
  for (int strip = top; strip < bottom; strip += kWidth) {
    const float v_begin = static_cast<float>(strip << kTileShift) - y;
    const Intervals hit = cover_strips(form, v_begin, x, nx);
    const vi from = hit.first > left ? hit.first : broadcast_int(left);
    const vi to = hit.last < right ? hit.last : broadcast_int(right);
    int32_t first[kWidth], last[kWidth];
    __builtin_memcpy(first, &from, sizeof(first));
    __builtin_memcpy(last, &to, sizeof(last));
    const int n_strips = bottom - strip < kWidth ? bottom - strip : kWidth;
    for (int i = 0; i < n_strips; ++i) {
      const int length = last[i] > first[i] ? last[i] - first[i] : 0;
      if (tiles) {
        const int id = (strip + i) * nx + first[i];
        for (int k = 0; k < length; ++k) tiles[n + k] = static_cast<uint32_t>(id + k);
      }
      n += static_cast<uint32_t>(length);
    }
  }
  return n;
}

}  // namespace millrace::kernels::MILLRACE_ISA
