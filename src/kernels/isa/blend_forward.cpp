// Alpha blending of one 16x16 tile, front to back (TRAINING.md 2.4): block after block of pixels,
// whose state stays in registers while the Gaussians that touch it pass by.
#include "kernels/isa/blend.h"
#include "kernels/isa/blend_entries.h"

namespace millrace::kernels::MILLRACE_ISA {
namespace {

/// The state of a tile's pixels in block order.
struct TileState {
  alignas(64) float transmittance[kTilePixels];
  alignas(64) float red[kTilePixels], green[kTilePixels], blue[kTilePixels], depth[kTilePixels];
  alignas(64) int32_t last[kTilePixels];
};

template <class T>
void begin_tile(const BlendArgs& args, const TileGeometry& t, uint32_t tile, bool with_depth,
                T& state) {
  const uint64_t plane = static_cast<uint64_t>(args.width) * args.height;
  for (int i = 0; i < kTilePixels; ++i) {
    state.red[i] = state.green[i] = state.blue[i] = state.depth[i] = 0.0f;
    state.transmittance[i] = 0.0f;
    state.last[i] = 0;
  }
  if (args.is_front) {
    // Pixels outside the image stay opaque: nothing is blended there, nor do they hold up the early
    // stop.
    for (int y = 0; y < t.rows; ++y) {
      for (int x = 0; x < t.columns; ++x) {
        state.transmittance[run_offset(x / kRun, y) + x % kRun] = 1.0f;
      }
    }
    return;
  }
  const uint64_t tile_pixels = static_cast<uint64_t>(tile) * kTilePixels;
  to_blocks(args.transmittance + tile_pixels, state.transmittance);
  to_blocks(args.last + tile_pixels, state.last);
  gather_plane(args.image, args.width, t, state.red);
  gather_plane(args.image + plane, args.width, t, state.green);
  gather_plane(args.image + 2 * plane, args.width, t, state.blue);
  if (with_depth) gather_plane(args.depth_alpha, args.width, t, state.depth);
}

/// Blends the entries of `chunk` into one block; `first` is the number of the chunk's first entry
/// plus one. Returns whether a pixel of it is still open.
template <bool kDepth>
bool blend_block(const Chunk& chunk, int block, int32_t first, const PixelPositions& positions,
                 TileState& state) {
  const int at = block * kWidth;
  vf transmittance = load(state.transmittance + at);
  const vf minimum = broadcast(kTransmittanceMin);
  Mask open = at_least(transmittance, minimum);
  if (!lane_bits(open)) return false;
  uint64_t entries = chunk.entries_of_block[block];
  if (!entries) return true;
  const vf x = load(positions.x + at), y = load(positions.y + at);
  vf red = load(state.red + at), green = load(state.green + at), blue = load(state.blue + at);
  vf depth = kDepth ? load(state.depth + at) : vf{};
  vi last;
  __builtin_memcpy(&last, state.last + at, sizeof(last));
  do {
    const int i = __builtin_ctzll(entries);
    entries &= entries - 1;
    const Exponent e = exponent_at(broadcast(chunk.u[i]), broadcast(chunk.v[i]),
                                   broadcast(chunk.a[i]), broadcast(chunk.b[i]),
                                   broadcast(chunk.c[i]), broadcast(chunk.level[i]), x, y);
    const Mask hit = both(open, at_least(e.level, broadcast(kLevelMin)));
    const vf alpha = keep(hit, min(exp2_in_range(e.level), broadcast(kAlphaMax)));
    const vf weight = alpha * transmittance;
    red = fma(weight, broadcast(chunk.red[i]), red);
    green = fma(weight, broadcast(chunk.green[i]), green);
    blue = fma(weight, broadcast(chunk.blue[i]), blue);
    if constexpr (kDepth) depth = fma(weight, broadcast(chunk.depth[i]), depth);
    last = select(hit, broadcast_int(first + i), last);
    transmittance -= weight;
    open = at_least(transmittance, minimum);
  } while (entries && lane_bits(open));
  store(state.transmittance + at, transmittance);
  store(state.red + at, red);
  store(state.green + at, green);
  store(state.blue + at, blue);
  if constexpr (kDepth) store(state.depth + at, depth);
  __builtin_memcpy(state.last + at, &last, sizeof(last));
  return lane_bits(open) != 0;
}

template <bool kDepth>
void forward(const BlendArgs& args, uint32_t tile) {
  const TileGeometry t = tile_geometry(args, tile);
  const uint32_t begin = args.tile_ranges[2 * tile], end = args.tile_ranges[2 * tile + 1];
  TileState state;
  begin_tile(args, t, tile, kDepth, state);
  PixelPositions positions;
  fill_positions(positions);
  Chunk chunk;
  for (uint32_t e = begin; e < end; e += kChunk) {
    const int n = static_cast<int>(end - e < kChunk ? end - e : kChunk);
    prepare_chunk(args, t, args.sorted_slots + e, n, chunk);
    const auto first = static_cast<int32_t>(e - begin + args.rank) + 1;
    bool any_open = false;
    for (int block = 0; block < kBlocks; ++block) {
      any_open |= blend_block<kDepth>(chunk, block, first, positions, state);
    }
    if (!any_open) break;
  }

  const uint64_t plane = static_cast<uint64_t>(args.width) * args.height;
  if (args.is_back) {
    alignas(64) float background[3 * kTilePixels];
    fill_background(args, t, background);
    float* colors[3] = {state.red, state.green, state.blue};
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < kTilePixels; ++i) {
        colors[c][i] += state.transmittance[i] * background[c * kTilePixels + i];
      }
    }
  }
  scatter_plane(state.red, args.width, t, args.image);
  scatter_plane(state.green, args.width, t, args.image + plane);
  scatter_plane(state.blue, args.width, t, args.image + 2 * plane);
  if constexpr (kDepth) {
    scatter_plane(state.depth, args.width, t, args.depth_alpha);
    alignas(64) float alpha[kTilePixels];
    for (int i = 0; i < kTilePixels; ++i) alpha[i] = 1.0f - state.transmittance[i];
    scatter_plane(alpha, args.width, t, args.depth_alpha + plane);
  }
  const uint64_t tile_pixels = static_cast<uint64_t>(tile) * kTilePixels;
  from_blocks(state.transmittance, args.transmittance + tile_pixels);
  from_blocks(state.last, args.last + tile_pixels);
}

}  // namespace

void blend_forward_tile(const BlendArgs& args, uint32_t tile) {
  if (args.depth_alpha) {
    forward<true>(args, tile);
  } else {
    forward<false>(args, tile);
  }
}

}  // namespace millrace::kernels::MILLRACE_ISA
