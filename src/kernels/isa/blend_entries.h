// The entries of a tile's list as the blend's inner loops take them: coordinates relative to the
// tile, exponents in powers of two, and the blocks that each can touch.
#pragma once

#include "kernels/isa/blend_tile.h"

namespace millrace::kernels::MILLRACE_ISA {

constexpr int kChunk = 64;  // entries prepared at a time: the bits of a word

// With y = F^T d scaled by this, alpha = 2^(log2 opacity - |y|^2).
constexpr float kExponentScale = 0.84932180028801907f;     // sqrt(log2(e) / 2)
constexpr float kLevelMin = -7.9943534368588579f;          // log2(1/255)
constexpr float kPixelSlack = 1.0f / 64.0f;                // px, for the rounding of the extents
constexpr float kExtentSlack = 4e-6f;                      // of the extent, for large ones

/// `n` entries from the front of a list, or a part of it; arrays by entry.
struct Chunk {
  // Scaled factor of the conic; y = (u - a x - b y, v - c y) at pixel (x, y) of the tile.
  alignas(64) float a[kChunk], b[kChunk], c[kChunk], u[kChunk], v[kChunk];
  alignas(64) float level[kChunk];  // log2 of the opacity
  alignas(64) float red[kChunk], green[kChunk], blue[kChunk], depth[kChunk];
  uint64_t entries_of_block[kBlocks];  // which entries can touch a block
};

/// 2^t for t in [-126, 127], relative error below 2e-7; anything else gives some number.
/// Method: 2^n 2^f, f in [-1/2, 1/2], the minimax polynomial of degree 5.
static inline vf exp2_in_range(vf t) {
  const vf rounded = t + 12582912.0f;  // 1.5 * 2^23: rounds to the nearest integer
  const vf f = t - (rounded - 12582912.0f);
  constexpr float kExp2[6] = {1.0000000717e+00f, 6.9314696706e-01f, 2.4022119721e-01f,
                              5.5507132747e-02f, 9.6755414798e-03f, 1.3276472029e-03f};
  vf p = fma(broadcast(kExp2[5]), f, broadcast(kExp2[4]));
  p = fma(p, f, broadcast(kExp2[3]));
  p = fma(p, f, broadcast(kExp2[2]));
  p = fma(p, f, broadcast(kExp2[1]));
  p = fma(p, f, broadcast(kExp2[0]));
  return bits_to_float(bits_to_int(p) + (bits_to_int(rounded) << 23));
}

/// The two coordinates and the exponent of one Gaussian in one block of pixels. The same operations
/// in both directions, so that both find the same pixels.
struct Exponent {
  vf y1, y2, level;
};
static inline Exponent exponent_at(vf u, vf v, vf a, vf b, vf c, vf level, vf x, vf y) {
  Exponent e;
  e.y1 = fnma(a, x, fnma(b, y, u));
  e.y2 = fnma(c, y, v);
  e.level = fnma(e.y1, e.y1, fnma(e.y2, e.y2, level));
  return e;
}

/// Fills `chunk` with the `n` entries whose slots begin at `slots`. Entries past `n` touch nothing.
static inline void prepare_chunk(const BlendArgs& args, const TileGeometry& t,
                                 const uint32_t* slots, int n, Chunk& chunk) {
  alignas(64) float x[kChunk], y[kChunk], extent_x[kChunk], extent_y[kChunk];
  const int padded = (n + kWidth - 1) / kWidth * kWidth;
  for (int i = 0; i < n; ++i) {
    const Projected& g = args.projected[args.instance_row[slots[i]]];
    x[i] = g.x;
    y[i] = g.y;
    chunk.a[i] = g.a;
    chunk.b[i] = g.b;
    chunk.c[i] = g.c;
    chunk.level[i] = g.opacity;
    chunk.red[i] = g.red;
    chunk.green[i] = g.green;
    chunk.blue[i] = g.blue;
    chunk.depth[i] = g.depth;
    extent_x[i] = g.extent_x;
    extent_y[i] = g.extent_y;
  }
  for (int i = n; i < padded; ++i) {
    x[i] = y[i] = 0.0f;
    chunk.a[i] = chunk.b[i] = chunk.c[i] = chunk.level[i] = 1.0f;
    extent_x[i] = 0.0f;
    extent_y[i] = -1.0f;
  }
  for (uint64_t& entries : chunk.entries_of_block) entries = 0;
  for (int i = 0; i < padded; i += kWidth) {
    const vf a = load(chunk.a + i), b = load(chunk.b + i), c = load(chunk.c + i);
    const vf gx = load(x + i) - (t.fx + 0.5f), gy = load(y + i) - (t.fy + 0.5f);
    // The ellipse's chord in each row of pixels.
    const vf inv_a = 1.0f / a, slope = b * inv_a, breadth = c * inv_a;
    const vf reach_y = fma(broadcast(kExtentSlack), load(extent_y + i),
                           load(extent_y + i) + kPixelSlack);
    const vf slack = fma(broadcast(kExtentSlack), load(extent_x + i), broadcast(kPixelSlack));
    const vf reach2 = reach_y * reach_y;
    const Mask real = at_least(load(extent_y + i), vf{});
    for (int band = 0; band < kBands; ++band) {
      vf low = broadcast(1e9f), high = broadcast(-1e9f);
      for (int row = band * kBlockRows; row < (band + 1) * kBlockRows; ++row) {
        const vf dy = gy - static_cast<float>(row);
        const vf rest = fnma(dy, dy, reach2);
        const vf centre = fma(slope, dy, gx);
        const vf half = fma(breadth, sqrt(max(rest, vf{})), slack);
        const Mask crossed = at_least(rest, vf{});
        low = select(crossed, min(low, centre - half), low);
        high = select(crossed, max(high, centre + half), high);
      }
      for (int column = 0; column < kBlockColumns; ++column) {
        const auto first = static_cast<float>(column * kRun);
        // What is not a number may touch anything.
        const Mask touched = neither(below(broadcast(first + (kRun - 1)), low),
                                     below(high, broadcast(first)));
        chunk.entries_of_block[band * kBlockColumns + column] |= uint64_t{lane_bits(both(touched, real))} << i;
      }
    }
    const vf a_scaled = a * kExponentScale, b_scaled = b * kExponentScale,
             c_scaled = c * kExponentScale;
    store(chunk.a + i, a_scaled);
    store(chunk.b + i, b_scaled);
    store(chunk.c + i, c_scaled);
    store(chunk.u + i, fma(a_scaled, gx, b_scaled * gy));
    store(chunk.v + i, c_scaled * gy);
    store(chunk.level + i, log2(load(chunk.level + i)));
  }
}

}  // namespace millrace::kernels::MILLRACE_ISA
