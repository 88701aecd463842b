// Alpha blending of one 16x16 tile, forward and backward (TRAINING.md 2.4, 2.5), on vectors of
// pixels.
#include "kernels/isa/blend.h"

namespace millrace::kernels::MILLRACE_ISA {
namespace {

constexpr int kTile = kTileSize;
constexpr int kColumns = kTile / kWidth;    // vectors per row
constexpr int kVectors = kTile * kColumns;  // vectors per tile
constexpr int kAliveInterval = 8;           // entries between looks for rows that are done

// Where a Gaussian may touch the tile: rows [row_begin, row_end), vectors [col_begin, col_end).
struct Reach {
  int row_begin, row_end, col_begin, col_end;
};

int clamp_to_tile(float x) { return x < 0.0f ? 0 : x > 16.0f ? 16 : static_cast<int>(x); }

// Pixel centres lie at +0.5; 1/64 px of slack covers the rounding of the extents.
Reach reach_of(const Projected& g, float tile_x, float tile_y) {
  constexpr float kSlack = 1.0f / 64.0f;
  const float x = g.x - tile_x - 0.5f, y = g.y - tile_y - 0.5f;
  const float ex = g.extent_x + kSlack, ey = g.extent_y + kSlack;
  Reach r;
  r.row_begin = clamp_to_tile(y - ey + 1.0f);
  r.row_end = clamp_to_tile(y + ey + 1.0f);
  r.col_begin = clamp_to_tile(x - ex + 1.0f) / kWidth;
  r.col_end = (clamp_to_tile(x + ex + 1.0f) + kWidth - 1) / kWidth;
  return r;
}

struct TileGeometry {
  int x0, y0, columns, rows;  // pixels of the image inside the tile
  float fx, fy;
};

TileGeometry tile_geometry(const BlendArgs& args, uint32_t tile) {
  TileGeometry t;
  t.x0 = static_cast<int>(tile % args.tiles_x) * kTile;
  t.y0 = static_cast<int>(tile / args.tiles_x) * kTile;
  const int right = static_cast<int>(args.width) - t.x0,
            bottom = static_cast<int>(args.height) - t.y0;
  t.columns = right < kTile ? right : kTile;
  t.rows = bottom < kTile ? bottom : kTile;
  t.fx = static_cast<float>(t.x0);
  t.fy = static_cast<float>(t.y0);
  return t;
}

// The background of each pixel of the tile, channel by channel.
void fill_background(const BlendArgs& args, const TileGeometry& t, float* background) {
  const StepBlock& step = *args.step;
  if (args.background) {
    const uint64_t plane = static_cast<uint64_t>(args.width) * args.height;
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < t.rows; ++y) {
        const uint8_t* row =
            args.background + c * plane + static_cast<uint64_t>(t.y0 + y) * args.width + t.x0;
        float* out = background + (c * kTile + y) * kTile;
        for (int x = 0; x < kTile; ++x) {
          out[x] = x < t.columns ? static_cast<float>(row[x]) * (1.0f / 255.0f) : 0.0f;
        }
      }
      for (int i = t.rows * kTile; i < kTile * kTile; ++i) background[c * kTile * kTile + i] = 0.0f;
    }
    return;
  }
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < kTile * kTile; ++i) background[c * kTile * kTile + i] = step.background[c];
  }
  if (!(step.modes & kModeRandomBackground)) return;
  for (int y = 0; y < t.rows; ++y) {
    const uint32_t first =
        static_cast<uint32_t>(t.y0 + y) * args.width + static_cast<uint32_t>(t.x0);
    random_background(step, first, static_cast<uint32_t>(t.columns), background + y * kTile,
                      background + (kTile + y) * kTile, background + (2 * kTile + y) * kTile);
  }
}

// Copies between an image plane and a tile-local array; pixels outside the image are left alone.
void gather_plane(const float* plane, uint32_t width, const TileGeometry& t, float* local) {
  for (int y = 0; y < t.rows; ++y) {
    const float* row = plane + static_cast<uint64_t>(t.y0 + y) * width + t.x0;
    for (int x = 0; x < t.columns; ++x) local[y * kTile + x] = row[x];
  }
}
void gather_vectors(const float* plane, uint32_t width, const TileGeometry& t, vf* vectors) {
  float local[kTile * kTile] = {};
  gather_plane(plane, width, t, local);
  for (int v = 0; v < kVectors; ++v) vectors[v] = load(local + v * kWidth);
}
void scatter_plane(const float* local, uint32_t width, const TileGeometry& t, float* plane) {
  for (int y = 0; y < t.rows; ++y) {
    float* row = plane + static_cast<uint64_t>(t.y0 + y) * width + t.x0;
    for (int x = 0; x < t.columns; ++x) row[x] = local[y * kTile + x];
  }
}

void pixel_columns(const TileGeometry& t, vf* px) {
  for (int c = 0; c < kColumns; ++c) {
    float lanes[kWidth];
    for (int i = 0; i < kWidth; ++i) lanes[i] = t.fx + static_cast<float>(c * kWidth + i) + 0.5f;
    px[c] = load(lanes);
  }
}

template <bool kDepth>
void forward(const BlendArgs& args, uint32_t tile) {
  const TileGeometry t = tile_geometry(args, tile);
  const uint32_t begin = args.tile_ranges[2 * tile], end = args.tile_ranges[2 * tile + 1];
  vf transmittance[kVectors], red[kVectors], green[kVectors], blue[kVectors], depth[kVectors];
  vi last[kVectors];
  const uint64_t plane = static_cast<uint64_t>(args.width) * args.height;
  const uint64_t tile_pixels = static_cast<uint64_t>(tile) * kTile * kTile;
  // Pixels outside the image start opaque: nothing is blended there, nor do they hold up the early
  // stop.
  float open[kTile * kTile];
  for (int y = 0; y < kTile; ++y) {
    for (int x = 0; x < kTile; ++x) {
      open[y * kTile + x] = y < t.rows && x < t.columns ? 1.0f : 0.0f;
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    transmittance[v] = load(open + v * kWidth);
    red[v] = green[v] = blue[v] = depth[v] = vf{};
    last[v] = vi{};
  }
  if (!args.is_front) {
    __builtin_memcpy(transmittance, args.transmittance + tile_pixels, sizeof(transmittance));
    __builtin_memcpy(last, args.last + tile_pixels, sizeof(last));
    gather_vectors(args.image, args.width, t, red);
    gather_vectors(args.image + plane, args.width, t, green);
    gather_vectors(args.image + 2 * plane, args.width, t, blue);
    if constexpr (kDepth) gather_vectors(args.depth_alpha, args.width, t, depth);
  }
  vf px[kColumns];
  pixel_columns(t, px);

  bool alive[kTile];
  for (int y = 0; y < kTile; ++y) alive[y] = y < t.rows;
  for (uint32_t e = begin; e < end; ++e) {
    if ((e - begin) % kAliveInterval == kAliveInterval - 1) {
      bool any_alive = false;
      for (int y = 0; y < t.rows; ++y) {
        vi row_alive = vi{};
        for (int c = 0; c < kColumns; ++c) {
          row_alive |= transmittance[y * kColumns + c] >= kTransmittanceMin;
        }
        alive[y] = any(row_alive);
        any_alive |= alive[y];
      }
      if (!any_alive) break;
    }
    const Projected& g = args.projected[args.instance_row[args.sorted_slots[e]]];
    const Reach reach = reach_of(g, t.fx, t.fy);
    const vi entry = broadcast_int(static_cast<int32_t>(e - begin + args.rank) + 1);
    for (int y = reach.row_begin; y < reach.row_end; ++y) {
      if (!alive[y]) continue;
      const float dy = g.y - (t.fy + static_cast<float>(y) + 0.5f);
      const float b_dy = g.b * dy, y2 = g.c * dy;
      for (int c = reach.col_begin; c < reach.col_end; ++c) {
        const int v = y * kColumns + c;
        const vf dx = g.x - px[c];
        const vf y1 = g.a * dx + b_dy;
        const vf power = 0.5f * (y1 * y1 + y2 * y2);
        const vf alpha = min(g.opacity * exp(-power), broadcast(kAlphaMax));
        const vi hit = (alpha >= kAlphaMin) & (transmittance[v] >= kTransmittanceMin);
        const vf weight = (hit ? alpha : vf{}) * transmittance[v];
        red[v] += weight * g.red;
        green[v] += weight * g.green;
        blue[v] += weight * g.blue;
        if constexpr (kDepth) depth[v] += weight * g.depth;
        transmittance[v] -= weight;
        last[v] = hit ? entry : last[v];
      }
    }
  }

  float background[3 * kTile * kTile];
  fill_background(args, t, background);
  float local[kTile * kTile];
  const vf* colors[3] = {red, green, blue};
  for (int c = 0; c < 3; ++c) {
    for (int v = 0; v < kVectors; ++v) {
      const vf behind = load(background + c * kTile * kTile + v * kWidth);
      store(local + v * kWidth,
            args.is_back ? colors[c][v] + transmittance[v] * behind : colors[c][v]);
    }
    scatter_plane(local, args.width, t, args.image + c * plane);
  }
  if constexpr (kDepth) {
    for (int v = 0; v < kVectors; ++v) store(local + v * kWidth, depth[v]);
    scatter_plane(local, args.width, t, args.depth_alpha);
    for (int v = 0; v < kVectors; ++v) store(local + v * kWidth, 1.0f - transmittance[v]);
    scatter_plane(local, args.width, t, args.depth_alpha + plane);
  }
  __builtin_memcpy(args.transmittance + tile_pixels, transmittance, sizeof(transmittance));
  __builtin_memcpy(args.last + tile_pixels, last, sizeof(last));
}

}  // namespace

void blend_forward_tile(const BlendArgs& args, uint32_t tile) {
  if (args.depth_alpha) {
    forward<true>(args, tile);
  } else {
    forward<false>(args, tile);
  }
}

void blend_backward_tile(const BlendArgs& args, uint32_t tile) {
  const TileGeometry t = tile_geometry(args, tile);
  const uint32_t begin = args.tile_ranges[2 * tile], end = args.tile_ranges[2 * tile + 1];
  if (begin == end) return;
  const uint64_t plane = static_cast<uint64_t>(args.width) * args.height;

  // Pixels outside the image keep zero gradients and zero `last`, so they contribute nothing.
  alignas(64) float d_color[3 * kTile * kTile] = {}, error[kTile * kTile] = {};
  for (int c = 0; c < 3; ++c) {
    gather_plane(args.d_image + c * plane, args.width, t, d_color + c * kTile * kTile);
  }
  if (args.error_map) gather_plane(args.error_map, args.width, t, error);
  float background[3 * kTile * kTile];
  fill_background(args, t, background);
  const uint64_t tile_pixels = static_cast<uint64_t>(tile) * kTile * kTile;
  vf transmittance[kVectors];
  vi last[kVectors];
  __builtin_memcpy(transmittance, args.transmittance + tile_pixels, sizeof(transmittance));
  __builtin_memcpy(last, args.last + tile_pixels, sizeof(last));

  // `behind` is dLoss/dcolour dotted with the colour of everything behind the entry being walked.
  vf behind[kVectors];
  int32_t walked = 0;
  for (int v = 0; v < kVectors; ++v) {
    behind[v] = vf{};
    for (int c = 0; c < 3; ++c) {
      behind[v] += load(d_color + c * kTile * kTile + v * kWidth) *
                   load(background + c * kTile * kTile + v * kWidth);
    }
    for (int i = 0; i < kWidth; ++i) walked = last[v][i] > walked ? last[v][i] : walked;
  }
  if (!args.is_back) {
    __builtin_memcpy(behind, args.carry, sizeof(behind));
    __builtin_memcpy(transmittance, args.carry + kTile * kTile, sizeof(transmittance));
  }
  vf px[kColumns];
  pixel_columns(t, px);

  // Entries are counted from the front of the tile; the slice holds [rank, rank + end - begin).
  const auto rank = static_cast<int32_t>(args.rank);
  int32_t index = rank + static_cast<int32_t>(end - begin) - 1;
  for (; index >= rank && index >= walked; --index) {
    args.gradients[args.sorted_slots[begin + static_cast<uint32_t>(index - rank)]] =
        InstanceGradient{};
  }
  for (; index >= rank; --index) {
    const uint32_t slot = args.sorted_slots[begin + static_cast<uint32_t>(index - rank)];
    const Projected& g = args.projected[args.instance_row[slot]];
    const Reach reach = reach_of(g, t.fx, t.fy);
    vf d_red = {}, d_green = {}, d_blue = {}, d_opacity = {}, weight_sum = {}, weight_error = {};
    // Moments of h = dLoss/dpower = -alpha dLoss/dalpha in y.
    vf h_1 = {}, h_2 = {}, h_11 = {}, h_12 = {}, h_22 = {};
    for (int y = reach.row_begin; y < reach.row_end; ++y) {
      const float dy = g.y - (t.fy + static_cast<float>(y) + 0.5f);
      const float b_dy = g.b * dy, y2 = g.c * dy;
      for (int c = reach.col_begin; c < reach.col_end; ++c) {
        const int v = y * kColumns + c;
        const vf dx = g.x - px[c];
        const vf y1 = g.a * dx + b_dy;
        const vf power = 0.5f * (y1 * y1 + y2 * y2);
        const vf falloff = exp(-power);
        const vf raw_alpha = g.opacity * falloff;
        const vi hit = (raw_alpha >= kAlphaMin) & (last[v] > index);
        if (!any(hit)) continue;
        const vf alpha = hit ? min(raw_alpha, broadcast(kAlphaMax)) : vf{};
        const vf before = transmittance[v] / (1.0f - alpha);
        const vf weight = before * alpha;
        const vf g_red = load(d_color + v * kWidth);
        const vf g_green = load(d_color + kTile * kTile + v * kWidth);
        const vf g_blue = load(d_color + 2 * kTile * kTile + v * kWidth);
        const vf g_color = g.red * g_red + g.green * g_green + g.blue * g_blue;
        d_red += weight * g_red;
        d_green += weight * g_green;
        d_blue += weight * g_blue;
        weight_sum += weight;
        weight_error += weight * load(error + v * kWidth);
        // A saturated alpha does not move with opacity or position.
        const vi moves = hit & (raw_alpha < kAlphaMax);
        const vf d_alpha = moves ? before * (g_color - behind[v]) : vf{};
        d_opacity += falloff * d_alpha;
        const vf h = -alpha * d_alpha;
        const vf hy1 = h * y1, hy2 = h * y2;
        h_1 += hy1;
        h_2 += hy2;
        h_11 += hy1 * y1;
        h_12 += hy1 * y2;
        h_22 += hy2 * y2;
        behind[v] += alpha * (g_color - behind[v]);
        transmittance[v] = before;
      }
    }
    InstanceGradient& out = args.gradients[slot];
    const float s1 = sum(h_1), s2 = sum(h_2);
    out.d_x = g.a * s1;
    out.d_y = g.b * s1 + g.c * s2;
    out.half_yy11 = 0.5f * sum(h_11);
    out.half_yy12 = 0.5f * sum(h_12);
    out.half_yy22 = 0.5f * sum(h_22);
    out.d_opacity = sum(d_opacity);
    out.d_red = sum(d_red);
    out.d_green = sum(d_green);
    out.d_blue = sum(d_blue);
    out.weight = sum(weight_sum);
    out.weight_error = sum(weight_error);
    out.d_depth = 0.0f;
  }
  if (args.is_front) return;
  __builtin_memcpy(args.carry, behind, sizeof(behind));
  __builtin_memcpy(args.carry + kTile * kTile, transmittance, sizeof(transmittance));
}

}  // namespace millrace::kernels::MILLRACE_ISA
