// The gradient of alpha blending in one 16x16 tile, back to front (TRAINING.md 2.5): Gaussian after
// Gaussian, whose sums stay in registers over the blocks of pixels that it touches.
#include "kernels/isa/blend.h"
#include "kernels/isa/blend_entries.h"

namespace millrace::kernels::MILLRACE_ISA {
namespace {

/// A tile's pixels in block order.
struct TilePixels {
  alignas(64) float d_red[kTilePixels], d_green[kTilePixels], d_blue[kTilePixels];
  alignas(64) float error[kTilePixels];
  alignas(64) float transmittance[kTilePixels];
  alignas(64) float behind[kTilePixels];  // dLoss/dtransmittance of all behind the next entry
  alignas(64) int32_t last[kTilePixels];
  PixelPositions positions;
};

void begin_tile(const BlendArgs& args, const TileGeometry& t, uint32_t tile, TilePixels& p) {
  const uint64_t plane = static_cast<uint64_t>(args.width) * args.height;
  // Pixels outside the image keep zero gradients and zero `last`, so they contribute nothing.
  for (int i = 0; i < kTilePixels; ++i) p.d_red[i] = p.d_green[i] = p.d_blue[i] = p.error[i] = 0;
  gather_plane(args.d_image, args.width, t, p.d_red);
  gather_plane(args.d_image + plane, args.width, t, p.d_green);
  gather_plane(args.d_image + 2 * plane, args.width, t, p.d_blue);
  if (args.error_map) gather_plane(args.error_map, args.width, t, p.error);
  fill_positions(p.positions);
  const uint64_t tile_pixels = static_cast<uint64_t>(tile) * kTilePixels;
  to_blocks(args.last + tile_pixels, p.last);
  if (!args.is_back) {
    __builtin_memcpy(p.behind, args.carry, sizeof(p.behind));
    __builtin_memcpy(p.transmittance, args.carry + kTilePixels, sizeof(p.transmittance));
    return;
  }
  to_blocks(args.transmittance + tile_pixels, p.transmittance);
  alignas(64) float background[3 * kTilePixels];
  fill_background(args, t, background);
  for (int i = 0; i < kTilePixels; ++i) {
    p.behind[i] = p.d_red[i] * background[i] + p.d_green[i] * background[kTilePixels + i] +
                  p.d_blue[i] * background[2 * kTilePixels + i];
  }
  if (!args.d_alpha) return;
  // Opacity is what the transmittance leaves: the light from behind costs that much more.
  alignas(64) float d_alpha[kTilePixels] = {};
  gather_plane(args.d_alpha, args.width, t, d_alpha);
  for (int i = 0; i < kTilePixels; ++i) p.behind[i] -= d_alpha[i];
}

/// Sums of one entry over its pixels.
struct EntrySums {
  vf d_red = {}, d_green = {}, d_blue = {}, weight = {}, weight_error = {};
  // Of k = alpha dLoss/dalpha = -dLoss/dpower, and its moments in the scaled y.
  vf k = {}, k_1 = {}, k_2 = {}, k_11 = {}, k_12 = {}, k_22 = {};
};
struct Sums {
  float d_red, d_green, d_blue, weight, weight_error, k, k_1, k_2, k_11, k_12, k_22, none;
};

/// Walks entry `i` of the chunk, number `index` of the tile, over the blocks of `touched`.
template <bool kError>
inline void walk_entry(const Chunk& chunk, int i, int32_t index, uint64_t touched, TilePixels& p,
                       EntrySums& sums) {
  const vf u = broadcast(chunk.u[i]), v = broadcast(chunk.v[i]), a = broadcast(chunk.a[i]),
           b = broadcast(chunk.b[i]), c = broadcast(chunk.c[i]), level = broadcast(chunk.level[i]),
           red = broadcast(chunk.red[i]), green = broadcast(chunk.green[i]),
           blue = broadcast(chunk.blue[i]);
  const vi number = broadcast_int(index);
  EntrySums s;
  for (; touched; touched &= touched - 1) {
    const int at = __builtin_ctzll(touched) * kWidth;
    const Exponent e =
        exponent_at(u, v, a, b, c, level, load(p.positions.x + at), load(p.positions.y + at));
    vi last;
    __builtin_memcpy(&last, p.last + at, sizeof(last));
    const Mask hit = both(above(last, number), at_least(e.level, broadcast(kLevelMin)));
    const vf raw_alpha = exp2_in_range(e.level);
    const vf alpha = keep(hit, min(raw_alpha, broadcast(kAlphaMax)));
    const vf before = load(p.transmittance + at) / (1.0f - alpha);
    const vf weight = before * alpha;
    const vf g_red = load(p.d_red + at), g_green = load(p.d_green + at),
             g_blue = load(p.d_blue + at);
    const vf behind = load(p.behind + at);
    // How the colour here differs from that behind it, as the loss sees it.
    const vf contrast = fma(red, g_red, fma(green, g_green, fma(blue, g_blue, -behind)));
    s.d_red = fma(weight, g_red, s.d_red);
    s.d_green = fma(weight, g_green, s.d_green);
    s.d_blue = fma(weight, g_blue, s.d_blue);
    s.weight += weight;
    if constexpr (kError) s.weight_error = fma(weight, load(p.error + at), s.weight_error);
    // A saturated alpha does not move with opacity or position.
    const vf k = keep(below(raw_alpha, broadcast(kAlphaMax)), weight * contrast);
    const vf k_1 = k * e.y1, k_2 = k * e.y2;
    s.k += k;
    s.k_1 += k_1;
    s.k_2 += k_2;
    s.k_11 = fma(k_1, e.y1, s.k_11);
    s.k_12 = fma(k_1, e.y2, s.k_12);
    s.k_22 = fma(k_2, e.y2, s.k_22);
    store(p.behind + at, fma(alpha, contrast, behind));
    store(p.transmittance + at, before);
  }
  sums = s;
}

void write_gradient(const EntrySums& entry, const Projected& g, InstanceGradient& out) {
  const vf lanes[12] = {entry.d_red,        entry.d_green, entry.d_blue, entry.weight,
                        entry.weight_error, entry.k,       entry.k_1,    entry.k_2,
                        entry.k_11,         entry.k_12,    entry.k_22,   vf{}};
  Sums s;
  sum_twelve(lanes, &s.d_red);
  constexpr float kUnscale = 1.0f / kExponentScale;
  const float s1 = -kUnscale * s.k_1, s2 = -kUnscale * s.k_2;
  out.d_x = g.a * s1;
  out.d_y = g.b * s1 + g.c * s2;
  constexpr float kHalf = -0.5f * kUnscale * kUnscale;
  out.half_yy11 = kHalf * s.k_11;
  out.half_yy12 = kHalf * s.k_12;
  out.half_yy22 = kHalf * s.k_22;
  out.d_opacity = s.k / g.opacity;
  out.d_red = s.d_red;
  out.d_green = s.d_green;
  out.d_blue = s.d_blue;
  out.weight = s.weight;
  out.weight_error = s.weight_error;
  out.d_depth = 0.0f;
}

}  // namespace

void blend_backward_tile(const BlendArgs& args, uint32_t tile) {
  const TileGeometry t = tile_geometry(args, tile);
  const uint32_t begin = args.tile_ranges[2 * tile], end = args.tile_ranges[2 * tile + 1];
  if (begin == end) return;
  TilePixels p;
  begin_tile(args, t, tile, p);
  // How far a pixel of each block walked: nothing behind it touches the block.
  int32_t walked = 0;
  int32_t block_walked[kBlocks];
  for (int block = 0; block < kBlocks; ++block) {
    block_walked[block] = 0;
    for (int i = block * kWidth; i < (block + 1) * kWidth; ++i) {
      block_walked[block] = p.last[i] > block_walked[block] ? p.last[i] : block_walked[block];
    }
    walked = block_walked[block] > walked ? block_walked[block] : walked;
  }

  // Entries are counted from the front of the tile; the slice holds [rank, rank + end - begin).
  const auto rank = static_cast<int32_t>(args.rank);
  const auto n_entries = static_cast<int32_t>(end - begin);
  int32_t n_walked = walked - rank;
  n_walked = n_walked < 0 ? 0 : n_walked > n_entries ? n_entries : n_walked;
  for (int32_t e = n_walked; e < n_entries; ++e) {
    args.gradients[args.sorted_slots[begin + static_cast<uint32_t>(e)]] = InstanceGradient{};
  }
  Chunk chunk;
  for (int32_t chunk_end = n_walked; chunk_end > 0;) {
    const int32_t chunk_begin = (chunk_end - 1) / kChunk * kChunk;
    const uint32_t* slots = args.sorted_slots + begin + static_cast<uint32_t>(chunk_begin);
    int32_t in_chunk[kBlocks];
    for (int block = 0; block < kBlocks; ++block) {
      in_chunk[block] = block_walked[block] - rank - chunk_begin;
    }
    prepare_chunk<Touch::BlocksOfEntry>(args, t, slots, chunk_end - chunk_begin, in_chunk, chunk);
    if (chunk_begin > 0) fetch_chunk(args, slots - kChunk, kChunk);
    for (int i = chunk_end - chunk_begin - 1; i >= 0; --i) {
      EntrySums sums;
      uint64_t touched = chunk.blocks_of_entry[0][i];
      if constexpr (kBlockWords > 1) touched |= uint64_t{chunk.blocks_of_entry[1][i]} << 32;
      if (args.error_map) {
        walk_entry<true>(chunk, i, rank + chunk_begin + i, touched, p, sums);
      } else {
        walk_entry<false>(chunk, i, rank + chunk_begin + i, touched, p, sums);
      }
      write_gradient(sums, args.projected[args.instance_row[slots[i]]], args.gradients[slots[i]]);
    }
    chunk_end = chunk_begin;
  }
  if (args.is_front) return;
  __builtin_memcpy(args.carry, p.behind, sizeof(p.behind));
  __builtin_memcpy(args.carry + kTilePixels, p.transmittance, sizeof(p.transmittance));
}

}  // namespace millrace::kernels::MILLRACE_ISA
