// A bilateral grid of one image: its slice at every pixel, the way back, and its update
// (TRAINING.md 5.2). A grid is [C,8,16,16]: over the image's width and height, and over the luma of
// the colour that it is applied to.
//   level  = 7 clamp(0.299 r + 0.587 g + 0.114 b, 0, 1)
//   sliced = trilinear interpolation of the 8 cells around (level, y, x) + offset     [C]
//   C = 12 out = A (rgb, 1) with the rows of A [3,4]; 0.5 where that is not finite
//   C = 9  out = clamp(color(2^sliced[0] max(rgb, 0); sliced[1..9])), kernels/ppisp_color.h
// No atomics: a cell gathers from the up to four areas around it, in a fixed order.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/parallel.h"
#include "kernels/grid_layout.h"
#include "kernels/isa/hot.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-15f;

GridArgs grid_args(const KernelCall& call) {
  const auto& params = call.params_as<GridParams>();
  GridArgs args = {};
  args.width = params.width;
  args.height = params.height;
  args.channels = params.channels;
  args.grid = call.buffer<const float>(2);
  args.offset = call.buffer<const float>(3);
  args.image = call.buffer<const float>(4);
  return args;
}

// x^n by squaring: the same products on every device.
float power(float x, uint32_t n) {
  float result = 1.0f;
  for (; n > 0; n >>= 1) {
    if (n & 1) result *= x;
    x *= x;
  }
  return result;
}

bool is_finite(float x) { return (std::bit_cast<uint32_t>(x) & 0x7F800000u) != 0x7F800000u; }

// The derivative of the total variation's mean over the image's cells and channels, by one cell.
float total_variation(const float* grid, const GridParams& params, uint32_t channel, uint32_t level,
                      uint32_t row, uint32_t column, float weight) {
  const float* cell = grid + grid_index(channel, level, row, column);
  const auto axis = [&](uint32_t at, uint32_t n, int64_t stride) {
    float difference = 0;
    if (at > 0) difference += cell[0] - cell[-stride];
    if (at + 1 < n) difference += cell[0] - cell[stride];
    // Differences along the axis: (n - 1) lines of cells.
    const float count = static_cast<float>(kGridCells / n * (n - 1));
    return difference / count;
  };
  const float scale = 2.0f * weight / static_cast<float>(params.channels * params.n_images);
  return scale * (axis(column, kGridColumns, 1) + axis(row, kGridRows, kGridColumns) +
                  axis(level, kGridLevels, kGridColumns * kGridRows));
}

}  // namespace

// grid_slice_forward: the image as its grid shows it.
// Bindings  step r, control r, grid r (a slot, of which the first C x 2048), offset r [12],
//           image r [3,H,W], out w [3,H,W].
// Writes    out, if the transaction was accepted.
void grid_slice_forward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  GridArgs args = grid_args(call);
  args.shown = call.buffer<float>(5);
  const HotKernels& hot = hot_kernels();
  parallel_blocks(kGridAreas,
                  [&](uint64_t i) { hot.grid_forward_area(args, static_cast<uint32_t>(i)); });
}

// grid_slice_backward: from the gradient of `out` to those of the image and of the grid.
// Bindings  step r, control r, grid r, offset r, image r, d_image x [3,H,W] (d_out, then d_image),
//           partials w [kGridAreas kGridParts, 4,8,12], d_grid w [C,8,16,16].
// Numerics  beyond the clamp of C = 9 only gradients that lead inside pass.
void grid_slice_backward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  GridArgs args = grid_args(call);
  args.d_image = call.buffer<float>(5);
  args.partials = call.buffer<float>(6);
  auto* d_grid = call.buffer<float>(7);
  const HotKernels& hot = hot_kernels();
  parallel_blocks(kGridAreas,
                  [&](uint64_t i) { hot.grid_backward_area(args, static_cast<uint32_t>(i)); });
  parallel_blocks(kGridRows, [&](uint64_t block) {
    const auto row = static_cast<uint32_t>(block);
    for (uint32_t column = 0; column < kGridColumns; ++column) {
      float sums[kGridLevels][kGridMaxChannels] = {};
      for (uint32_t j = 0; j < 2; ++j) {
        for (uint32_t i = 0; i < 2; ++i) {
          if (row < j || column < i) continue;
          const uint32_t area_row = row - j, area_column = column - i;
          if (area_row >= kGridAreasAcross || area_column >= kGridAreasAcross) continue;
          const uint64_t area = area_row * kGridAreasAcross + area_column;
          const float* partial = args.partials + area * kGridPartialFloats;
          for (uint32_t level = 0; level < kGridLevels; ++level) {
            for (uint32_t c = 0; c < args.channels; ++c) {
              sums[level][c] += partial[partial_index(2 * j + i, level, c)];
            }
          }
        }
      }
      for (uint32_t level = 0; level < kGridLevels; ++level) {
        for (uint32_t c = 0; c < args.channels; ++c) {
          d_grid[grid_index(c, level, row, column)] = sums[level][c];
        }
      }
    }
  });
}

// grid_update: adds the gradient of the total variation, decays the moments by what the grid missed
// since its last update, takes an Adam step, and keeps means: with C = 9 each channel's mean over
// the image's cells at 0; with C = 12 the mean over all images at the identity, by the shared
// offset. Bindings  step r, control r, d_grid r [C,8,16,16], slot x [3,C,8,16,16] (values, both
// moments),
//           offset x [12], last x [images] u32: the number of each image's last update, from 1.
// Writes    slot, offset and last[frame], if the transaction was accepted.
// Numerics  a gradient that is not finite counts as 0.
void grid_update(const KernelCall& call) {
  const auto& params = call.params_as<GridParams>();
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  if (!accepted(step, *call.buffer<const Control>(1))) return;
  const AppearanceStep& appearance = step.appearance;
  const auto* d_grid = call.buffer<const float>(2);
  auto* grid = call.buffer<float>(3);
  auto* offset = call.buffer<float>(4);
  auto* last = call.buffer<uint32_t>(5);
  const uint32_t missed = appearance.updates - last[appearance.frame];
  const float decay1 = kBeta1 * power(kBeta1, missed), decay2 = kBeta2 * power(kBeta2, missed);
  const uint64_t floats = uint64_t{params.channels} * kGridCells;
  parallel_blocks(params.channels, [&](uint64_t block) {
    const auto c = static_cast<uint32_t>(block);
    float* value = grid + uint64_t{c} * kGridCells;
    float* first = value + floats;
    float* second = first + floats;
    float updated[kGridCells];
    double before = 0, after = 0;
    for (uint32_t i = 0; i < kGridCells; ++i) {
      const uint32_t level = i / (kGridRows * kGridColumns);
      const uint32_t row = i / kGridColumns % kGridRows, column = i % kGridColumns;
      float g = d_grid[uint64_t{c} * kGridCells + i] +
                total_variation(grid, params, c, level, row, column, appearance.grid_tv);
      g = is_finite(g) ? std::clamp(g, -kGradientClamp, kGradientClamp) : 0.0f;
      const float m = decay1 * first[i] + (1.0f - kBeta1) * g;
      const float v = decay2 * second[i] + (1.0f - kBeta2) * (g * g);
      first[i] = m;
      second[i] = v;
      updated[i] = value[i] - appearance.grid_rate * m /
                                  (std::sqrt(v) * appearance.grid_inv_sqrt_bias2 + kEpsilon);
      before += value[i];
      after += updated[i];
    }
    float shift = 0;
    if (params.channels == kGridAffineChannels) {
      offset[c] -= static_cast<float>((after - before) / (double{kGridCells} * params.n_images));
    } else {
      shift = static_cast<float>(after / kGridCells);
    }
    for (uint32_t i = 0; i < kGridCells; ++i) value[i] = updated[i] - shift;
  });
  last[appearance.frame] = appearance.updates + 1;
}

}  // namespace millrace::kernels
