// One 16x16 tile as vectors: which pixels a vector holds, and the ways between image planes and
// tile-local arrays.
#pragma once

#include "kernels/isa/hot.h"
#include "kernels/isa/vector.h"

namespace millrace::kernels::MILLRACE_ISA {

// A vector holds a block of 4 pixels by kWidth / 4 rows: few blocks are touched by the border of a
// Gaussian alone, however wide the vectors. Local arrays hold block after block.
constexpr int kTile = kTileSize;
constexpr int kTilePixels = kTile * kTile;
constexpr int kRun = 4;  // neighbouring pixels of one row of a block
constexpr int kBlockRows = kWidth / kRun;
constexpr int kBlockColumns = kTile / kRun;    // blocks side by side
constexpr int kBands = kTile / kBlockRows;     // blocks on top of each other
constexpr int kBlocks = kBands * kBlockColumns;

/// Where the run of pixels (4 run .. 4 run + 3, y) of the tile lies in a local array.
constexpr int run_offset(int run, int y) {
  return (y / kBlockRows * kBlockColumns + run) * kWidth + y % kBlockRows * kRun;
}

struct TileGeometry {
  int x0, y0, columns, rows;  // pixels of the image inside the tile
  float fx, fy;
};

static inline TileGeometry tile_geometry(const BlendArgs& args, uint32_t tile) {
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

/// The pixels' coordinates in the tile, 0 to 15.
struct PixelPositions {
  alignas(64) float x[kTilePixels], y[kTilePixels];
};
static inline void fill_positions(PixelPositions& p) {
  for (int y = 0; y < kTile; ++y) {
    for (int x = 0; x < kTile; ++x) {
      p.x[run_offset(x / kRun, y) + x % kRun] = static_cast<float>(x);
      p.y[run_offset(x / kRun, y) + x % kRun] = static_cast<float>(y);
    }
  }
}

/// From a tile's [256] in rows of pixels to blocks, and back.
static inline void to_blocks(const void* rows, void* blocks) {
  for (int y = 0; y < kTile; ++y) {
    for (int run = 0; run < kBlockColumns; ++run) {
      __builtin_memcpy(static_cast<float*>(blocks) + run_offset(run, y),
                       static_cast<const float*>(rows) + y * kTile + run * kRun,
                       kRun * sizeof(float));
    }
  }
}
static inline void from_blocks(const void* blocks, void* rows) {
  for (int y = 0; y < kTile; ++y) {
    for (int run = 0; run < kBlockColumns; ++run) {
      __builtin_memcpy(static_cast<float*>(rows) + y * kTile + run * kRun,
                       static_cast<const float*>(blocks) + run_offset(run, y),
                       kRun * sizeof(float));
    }
  }
}

/// Copies between an image plane and a local array; pixels outside the image are left alone.
static inline void gather_plane(const float* plane, uint32_t width, const TileGeometry& t,
                                float* local) {
  for (int y = 0; y < t.rows; ++y) {
    const float* row = plane + static_cast<uint64_t>(t.y0 + y) * width + t.x0;
    for (int x = 0; x < t.columns; ++x) local[run_offset(x / kRun, y) + x % kRun] = row[x];
  }
}
static inline void scatter_plane(const float* local, uint32_t width, const TileGeometry& t,
                                 float* plane) {
  for (int y = 0; y < t.rows; ++y) {
    float* row = plane + static_cast<uint64_t>(t.y0 + y) * width + t.x0;
    for (int x = 0; x < t.columns; ++x) row[x] = local[run_offset(x / kRun, y) + x % kRun];
  }
}

/// The background of each pixel, channel by channel: [3] local arrays.
static inline void fill_background(const BlendArgs& args, const TileGeometry& t,
                                   float* background) {
  const StepBlock& step = *args.step;
  for (int c = 0; c < 3; ++c) {
    const float color = args.background ? 0.0f : step.background[c];
    for (int i = 0; i < kTilePixels; ++i) background[c * kTilePixels + i] = color;
  }
  if (args.background) {
    const uint64_t plane = static_cast<uint64_t>(args.width) * args.height;
    for (int c = 0; c < 3; ++c) {
      float* out = background + c * kTilePixels;
      for (int y = 0; y < t.rows; ++y) {
        const uint8_t* row =
            args.background + c * plane + static_cast<uint64_t>(t.y0 + y) * args.width + t.x0;
        for (int x = 0; x < t.columns; ++x) {
          out[run_offset(x / kRun, y) + x % kRun] = static_cast<float>(row[x]) * (1.0f / 255.0f);
        }
      }
    }
    return;
  }
  if (!(step.modes & kModeRandomBackground)) return;
  for (int y = 0; y < t.rows; ++y) {
    const uint32_t first =
        static_cast<uint32_t>(t.y0 + y) * args.width + static_cast<uint32_t>(t.x0);
    float color[3][kTile];
    random_background(step, first, static_cast<uint32_t>(t.columns), color[0], color[1], color[2]);
    for (int c = 0; c < 3; ++c) {
      for (int x = 0; x < t.columns; ++x) {
        background[c * kTilePixels + run_offset(x / kRun, y) + x % kRun] = color[c][x];
      }
    }
  }
}

}  // namespace millrace::kernels::MILLRACE_ISA
