// The blend kernels written by hand for CUDA: what the Slang ones are measured against. Same
// argument blocks, inputs and outputs; whole frames over a flat background only.
#include "kernels/splat_params.h"

namespace {

using namespace millrace;

constexpr uint32_t kAll = 0xFFFFFFFFu;
constexpr int kLanes = 32;
constexpr int kTilePixels = kTileSize * kTileSize;
constexpr int kSums = 12;  // in the order of InstanceGradient
constexpr int kParts = 3;  // float4 of a Projected or an InstanceGradient

struct Head {
  uint64_t threads;
  const uint32_t* count;
  void* scratch;
  uint32_t pass, groups;
};

struct ForwardArgs {
  Head head;
  const StepBlock* step;
  const Control* control;
  const float4* projected;
  const uint32_t* instance_row;
  const uint32_t* sorted_slots;
  const uint2* tile_ranges;
  const uint8_t* background;
  const BandTable* bands;
  float* image;
  float* transmittance;
  uint32_t* last;
  float* depth_alpha;
  FrameParams params;
};

struct BackwardArgs {
  Head head;
  const StepBlock* step;
  const Control* control;
  const float4* projected;
  const uint32_t* instance_row;
  const uint32_t* sorted_slots;
  const uint2* tile_ranges;
  const uint8_t* background;
  const BandTable* bands;
  const float* transmittance;
  const uint32_t* last;
  const float* d_image;
  const float* error_map;
  float4* gradients;
  float* carry;
  FrameParams params;
};

// The pixels of a warp: kColumns wide, each lane has kPixels of them in one column.
template <int kColumns, int kPixels>
struct WarpTile {
  static constexpr int kThreads = kTilePixels / kPixels;
  static constexpr int kWarps = kThreads / kLanes;
  static constexpr int kLaneRows = kLanes / kColumns;
  static constexpr int kRows = kLaneRows * kPixels;
  static constexpr int kWarpsAcross = kTileSize / kColumns;

  int left, top;  // of the warp, in the tile
  int x, y;       // of the lane's first pixel, in the tile
  __device__ WarpTile(int warp, int lane)
      : left(warp % kWarpsAcross * kColumns),
        top(warp / kWarpsAcross * kRows),
        x(left + lane % kColumns),
        y(top + lane / kColumns) {}
  __device__ int row(int pixel) const { return y + pixel * kLaneRows; }
};

__device__ float square(float x) { return x * x; }

// The smallest (a u + b v)^2 + (c v)^2 over v in [v0, v1] at a fixed u, times 1.
__device__ float least_over_v(float a, float b, float c, float inverse, float u, float v0,
                              float v1) {
  const float v = fminf(fmaxf(-a * b * u * inverse, v0), v1);
  return square(a * u + b * v) + square(c * v);
}

// Whether the ellipse alpha >= 1/255 reaches a rectangle of pixel centres; 1/64 px of slack.
__device__ bool reaches(float4 p0, float4 p1, float left, float top, int columns, int rows) {
  constexpr float kSlack = 1.0f / 64.0f;
  const float a = p0.z, b = p0.w, c = p1.x;
  const float u0 = left + 0.5f - kSlack - p0.x,
              u1 = u0 + static_cast<float>(columns - 1) + 2 * kSlack;
  const float v0 = top + 0.5f - kSlack - p0.y, v1 = v0 + static_cast<float>(rows - 1) + 2 * kSlack;
  const bool across = u0 <= 0.0f && u1 >= 0.0f, down = v0 <= 0.0f && v1 >= 0.0f;
  if (across && down) return true;
  // Convex: the least value lies on an edge that faces the centre.
  const float u = u0 > 0.0f ? u0 : u1, v = v0 > 0.0f ? v0 : v1;
  float least = 3.4e38f;
  if (!across) {
    least = least_over_v(a, b, c, __fdividef(1.0f, b * b + c * c), u, v0, v1);
  }
  if (!down) {
    const float at = fminf(fmaxf(__fdividef(-b * v, a), u0), u1);
    least = fminf(least, square(a * at + b * v) + square(c * v));
  }
  return least <= 2.0f * __logf(255.0f * p1.y) + 1e-3f;
}

__device__ bool accepted(const StepBlock* step, const Control* control) {
  return control->gate.accepted == step->transaction;
}

// exp(-(y1^2 + y2^2) / 2).
__device__ float falloff_of(float y1, float y2) {
  return exp2f(-0.72134752f * (y1 * y1 + y2 * y2));
}

template <int kColumns, int kPixels>
__device__ void forward(const ForwardArgs& args) {
  using Tile = WarpTile<kColumns, kPixels>;
  constexpr int kThreads = Tile::kThreads;
  __shared__ float4 batch[kParts][kThreads];
  if (!accepted(args.step, args.control)) return;
  const int local = threadIdx.x, lane = local % kLanes;
  const Tile warp(local / kLanes, lane);
  const uint32_t width = args.params.width, height = args.params.height, plane = width * height;
  const uint32_t n_tiles = args.params.tiles_x * args.params.tiles_y;
  for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += args.head.groups) {
    const uint32_t x0 = tile % args.params.tiles_x * kTileSize;
    const uint32_t y0 = tile / args.params.tiles_x * kTileSize;
    const uint2 range = args.tile_ranges[tile];
    const float px = static_cast<float>(x0 + warp.x) + 0.5f;
    float py[kPixels], transmittance[kPixels], red[kPixels], green[kPixels], blue[kPixels];
    uint32_t last[kPixels];
#pragma unroll
    for (int p = 0; p < kPixels; ++p) {
      py[p] = static_cast<float>(y0 + warp.row(p)) + 0.5f;
      transmittance[p] = x0 + warp.x < width && y0 + warp.row(p) < height ? 1.0f : 0.0f;
      red[p] = green[p] = blue[p] = 0.0f;
      last[p] = 0;
    }
    uint32_t row = 0;
    if (range.x + local < range.y) row = args.instance_row[args.sorted_slots[range.x + local]];
    for (uint32_t begin = range.x; begin < range.y; begin += kThreads) {
      bool alive = false;
#pragma unroll
      for (int p = 0; p < kPixels; ++p) alive |= transmittance[p] >= kTransmittanceMin;
      if (!__syncthreads_or(alive)) break;
      if (begin + local < range.y) {
#pragma unroll
        for (int i = 0; i < kParts; ++i)
          batch[i][local] = args.projected[uint64_t{row} * kParts + i];
      }
      const uint32_t next = begin + kThreads + local;
      if (next < range.y) row = args.instance_row[args.sorted_slots[next]];
      __syncthreads();
      const int n = min(static_cast<uint32_t>(kThreads), range.y - begin);
      for (int first = 0; first < n; first += kLanes) {
        alive = false;
#pragma unroll
        for (int p = 0; p < kPixels; ++p) alive |= transmittance[p] >= kTransmittanceMin;
        if (!__any_sync(kAll, alive)) break;
        const int mine = first + lane;
        const bool reached =
            mine < n && reaches(batch[0][mine], batch[1][mine], static_cast<float>(x0 + warp.left),
                                static_cast<float>(y0 + warp.top), kColumns, Tile::kRows);
        uint32_t todo = __ballot_sync(kAll, reached);
        while (todo != 0) {
          const int i = first + __ffs(todo) - 1;
          todo &= todo - 1;
          const float4 p0 = batch[0][i], p1 = batch[1][i];
          const float entry_blue = batch[2][i].x, dx = p0.x - px;
          const uint32_t number = begin - range.x + i + 1;
#pragma unroll
          for (int p = 0; p < kPixels; ++p) {
            const float dy = p0.y - py[p];
            const float y1 = p0.z * dx + p0.w * dy, y2 = p1.x * dy;
            const float alpha = fminf(p1.y * falloff_of(y1, y2), kAlphaMax);
            if (alpha < kAlphaMin || transmittance[p] < kTransmittanceMin) continue;
            const float weight = alpha * transmittance[p];
            red[p] += weight * p1.z;
            green[p] += weight * p1.w;
            blue[p] += weight * entry_blue;
            transmittance[p] -= weight;
            last[p] = number;
          }
        }
      }
    }
#pragma unroll
    for (int p = 0; p < kPixels; ++p) {
      const uint32_t at = tile * kTilePixels + warp.row(p) * kTileSize + warp.x;
      args.transmittance[at] = transmittance[p];
      args.last[at] = last[p];
      if (x0 + warp.x >= width || y0 + warp.row(p) >= height) continue;
      const uint32_t pixel = (y0 + warp.row(p)) * width + x0 + warp.x;
      args.image[pixel] = red[p] + transmittance[p] * args.step->background[0];
      args.image[plane + pixel] = green[p] + transmittance[p] * args.step->background[1];
      args.image[2 * plane + pixel] = blue[p] + transmittance[p] * args.step->background[2];
    }
    __syncthreads();
  }
}

// Adds twelve values over the lanes and leaves value summed_by(lane) in each: 13 exchanges.
__device__ float transpose_sum(const float (&v)[kSums], int lane) {
  float six[6], three[3];
  const bool bit4 = lane & 16, bit3 = lane & 8, bit2 = lane & 4, bit1 = lane & 2;
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    six[i] = (bit4 ? v[i + 6] : v[i]) + __shfl_xor_sync(kAll, bit4 ? v[i] : v[i + 6], 16);
  }
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    three[i] = (bit3 ? six[i + 3] : six[i]) + __shfl_xor_sync(kAll, bit3 ? six[i] : six[i + 3], 8);
  }
  const float two0 =
      (bit2 ? three[2] : three[0]) + __shfl_xor_sync(kAll, bit2 ? three[0] : three[2], 4);
  const float two1 = (bit2 ? 0.0f : three[1]) + __shfl_xor_sync(kAll, bit2 ? three[1] : 0.0f, 4);
  const float one = (bit1 ? two1 : two0) + __shfl_xor_sync(kAll, bit1 ? two0 : two1, 2);
  return one + __shfl_xor_sync(kAll, one, 1);
}
__device__ int summed_by(int lane) {
  const int part = (lane >> 2 & 1) * 2 + (lane >> 1 & 1);
  return (lane >> 4 & 1) * 6 + (lane >> 3 & 1) * 3 + min(part, 2);
}

// Entries of a tile are walked from the back, kLanes at a time. While one batch is worked on, the
// next one is on its way from memory; one barrier per batch.
template <int kColumns, int kPixels>
__device__ void backward(const BackwardArgs& args) {
  using Tile = WarpTile<kColumns, kPixels>;
  constexpr int kWarps = Tile::kWarps, kFetchers = kLanes * kParts;
  __shared__ float4 batch[3][kLanes][kParts];
  __shared__ float4 sums[2][kWarps][kLanes][kParts];
  __shared__ uint32_t hits[2][kWarps];
  __shared__ uint32_t walked_by[kWarps];
  if (!accepted(args.step, args.control)) return;
  const int local = threadIdx.x, lane = local % kLanes, warp_id = local / kLanes;
  const int fetched = local / kParts, part = local % kParts;  // what this thread moves
  const Tile warp(warp_id, lane);
  const int sum_of_lane = summed_by(lane);
  const bool sum_is_mine = (lane & 1) == 0 && (lane & 6) != 6;
  const uint32_t width = args.params.width, height = args.params.height, plane = width * height;
  const uint32_t n_tiles = args.params.tiles_x * args.params.tiles_y;
  const bool has_error = (args.params.inputs & kFrameHasErrorMap) != 0;
  for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += args.head.groups) {
    const uint2 range = args.tile_ranges[tile];
    if (range.x == range.y) continue;
    const uint32_t x0 = tile % args.params.tiles_x * kTileSize;
    const uint32_t y0 = tile / args.params.tiles_x * kTileSize;
    const float px = static_cast<float>(x0 + warp.x) + 0.5f;
    float transmittance[kPixels], behind[kPixels], error[kPixels];
    float g_red[kPixels], g_green[kPixels], g_blue[kPixels];
    uint32_t last[kPixels], most = 0;
#pragma unroll
    for (int p = 0; p < kPixels; ++p) {
      const uint32_t at = tile * kTilePixels + warp.row(p) * kTileSize + warp.x;
      transmittance[p] = args.transmittance[at];
      last[p] = args.last[at];
      most = max(most, last[p]);
      g_red[p] = g_green[p] = g_blue[p] = error[p] = behind[p] = 0.0f;
      if (x0 + warp.x >= width || y0 + warp.row(p) >= height) continue;
      const uint32_t pixel = (y0 + warp.row(p)) * width + x0 + warp.x;
      g_red[p] = args.d_image[pixel];
      g_green[p] = args.d_image[plane + pixel];
      g_blue[p] = args.d_image[2 * plane + pixel];
      if (has_error) error[p] = args.error_map[pixel];
      behind[p] = g_red[p] * args.step->background[0] + g_green[p] * args.step->background[1] +
                  g_blue[p] * args.step->background[2];
    }
    const int walked = static_cast<int>(__reduce_max_sync(kAll, most));
    if (lane == 0) walked_by[warp_id] = walked;
    __syncthreads();
    int tile_end = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) tile_end = max(tile_end, static_cast<int>(walked_by[w]));

    const int length = static_cast<int>(range.y - range.x);
    for (int i = tile_end * kParts + local; i < length * kParts; i += Tile::kThreads) {
      const uint64_t slot = args.sorted_slots[range.x + i / kParts];
      args.gradients[slot * kParts + i % kParts] = make_float4(0, 0, 0, 0);
    }

    // Three loads hang on each other (slot, row, Gaussian): each is made a batch ahead.
    const bool fetches = local < kFetchers;
    int mine = tile_end - kLanes + fetched;  // the entry of batch k that this thread fetches
    const auto slot_at = [&](int entry) {
      return fetches && entry >= 0 ? args.sorted_slots[range.x + entry] : 0u;
    };
    uint32_t slot = slot_at(mine), slot1 = slot_at(mine - kLanes),
             slot2 = slot_at(mine - 2 * kLanes);
    uint32_t row1 = fetches ? args.instance_row[slot1] : 0;
    if (fetches) {
      batch[0][fetched][part] = args.projected[uint64_t{args.instance_row[slot]} * kParts + part];
    }
    __syncthreads();

    int buffer = 0, half = 0;
    for (int begin = tile_end - kLanes; begin > -kLanes; begin -= kLanes) {
      float4 next;
      uint32_t row2 = 0, slot3 = 0;
      if (fetches) {
        next = args.projected[uint64_t{row1} * kParts + part];
        row2 = args.instance_row[slot2];
        slot3 = slot_at(mine - 3 * kLanes);
      }
      const float4(*entries)[kParts] = batch[buffer];
      const int own = begin + lane;
      const bool reached =
          own >= 0 && own < walked &&
          reaches(entries[lane][0], entries[lane][1], static_cast<float>(x0 + warp.left),
                  static_cast<float>(y0 + warp.top), kColumns, Tile::kRows);
      uint32_t todo = __ballot_sync(kAll, reached), hit_here = 0;
      while (todo != 0) {
        const int i = 31 - __clz(static_cast<int>(todo));
        todo ^= 1u << i;
        const int index = begin + i;
        const float4 p0 = entries[i][0], p1 = entries[i][1];
        const float entry_blue = entries[i][2].x, dx = p0.x - px;
        float y1[kPixels], y2[kPixels], falloff[kPixels];
        bool hit[kPixels], any = false;
#pragma unroll
        for (int p = 0; p < kPixels; ++p) {
          const float dy = p0.y - (static_cast<float>(y0 + warp.row(p)) + 0.5f);
          y1[p] = p0.z * dx + p0.w * dy;
          y2[p] = p1.x * dy;
          falloff[p] = falloff_of(y1[p], y2[p]);
          hit[p] = p1.y * falloff[p] >= kAlphaMin && static_cast<int>(last[p]) > index;
          any |= hit[p];
        }
        if (!__any_sync(kAll, any)) continue;
        float v[kSums] = {};
#pragma unroll
        for (int p = 0; p < kPixels; ++p) {
          const float raw_alpha = p1.y * falloff[p];
          const float alpha = hit[p] ? fminf(raw_alpha, kAlphaMax) : 0.0f;
          const float before = __fdividef(transmittance[p], 1.0f - alpha), weight = before * alpha;
          const float g_color = p1.z * g_red[p] + p1.w * g_green[p] + entry_blue * g_blue[p];
          const float change = g_color - behind[p];
          const float d_alpha = hit[p] && raw_alpha < kAlphaMax ? before * change : 0.0f;
          const float h = -alpha * d_alpha, hy1 = h * y1[p], hy2 = h * y2[p];
          v[0] += hy1;
          v[1] += hy2;
          v[2] += hy1 * y1[p];
          v[3] += hy1 * y2[p];
          v[4] += hy2 * y2[p];
          v[5] += falloff[p] * d_alpha;
          v[6] += weight * g_red[p];
          v[7] += weight * g_green[p];
          v[8] += weight * g_blue[p];
          v[9] += weight;
          v[10] += weight * error[p];
          behind[p] += alpha * change;
          transmittance[p] = before;
        }
        const float sum = transpose_sum(v, lane);
        if (sum_is_mine) reinterpret_cast<float*>(sums[half][warp_id][i])[sum_of_lane] = sum;
        hit_here |= 1u << i;
      }
      if (lane == 0) hits[half][warp_id] = hit_here;
      const int next_buffer = buffer == 2 ? 0 : buffer + 1;
      if (fetches) batch[next_buffer][fetched][part] = next;
      __syncthreads();
      if (fetches && begin + fetched >= 0) {
        float4 total = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
          if ((hits[half][w] >> fetched & 1) == 0) continue;
          const float4 s = sums[half][w][fetched][part];
          total.x += s.x;
          total.y += s.y;
          total.z += s.z;
          total.w += s.w;
        }
        if (part == 0) {
          const float4 p0 = entries[fetched][0];
          total = make_float4(p0.z * total.x, p0.w * total.x + entries[fetched][1].x * total.y,
                              0.5f * total.z, 0.5f * total.w);
        } else if (part == 1) {
          total.x *= 0.5f;
        }
        args.gradients[uint64_t{slot} * kParts + part] = total;
      }
      slot = slot1;
      slot1 = slot2;
      slot2 = slot3;
      row1 = row2;
      mine -= kLanes;
      buffer = next_buffer;
      half ^= 1;
    }
    __syncthreads();
  }
}

}  // namespace

#define HAND_KERNELS(columns, pixels, name)                             \
  extern "C" __global__ void __launch_bounds__(256 / pixels)            \
      hand_forward_##name(const __grid_constant__ ForwardArgs args) {   \
    forward<columns, pixels>(args);                                     \
  }                                                                     \
  extern "C" __global__ void __launch_bounds__(256 / pixels)            \
      hand_backward_##name(const __grid_constant__ BackwardArgs args) { \
    backward<columns, pixels>(args);                                    \
  }
HAND_KERNELS(16, 1, 16x2)
HAND_KERNELS(8, 1, 8x4)
HAND_KERNELS(8, 2, 8x8)
