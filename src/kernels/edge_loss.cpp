// edge_loss: how much the edges of the image differ from the photograph's (TRAINING.md 4.5).
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr int64_t kRows = 16;  // of a partial sum
constexpr int64_t kBorder = 5;
constexpr float kSoft = 0.001f;  // epsilon of the rounded magnitude
constexpr float kLuma[3] = {0.2126f, 0.7152f, 0.0722f};
// Sobel over 8: kAcross[j][i] is the tap of gx at (i - 1, j - 1); gy's is its transpose.
constexpr float kAcross[3][3] = {
    {-0.125f, 0.0f, 0.125f}, {-0.25f, 0.0f, 0.25f}, {-0.125f, 0.0f, 0.125f}};

struct Frame {
  const float* image;
  const uint8_t* target;
  const float* weight;  // or null: the pixels away from the border count 1
  int64_t width, height;

  // luminance(image) - luminance(target)
  float residual(int64_t x, int64_t y) const {
    const int64_t plane = width * height;
    float r = 0;
    for (int64_t c = 0; c < 3; ++c) {
      const int64_t at = c * plane + y * width + x;
      r += kLuma[c] * (image[at] - static_cast<float>(target[at]) * (1.0f / 255.0f));
    }
    return r;
  }
  float weight_at(int64_t x, int64_t y) const {
    if (weight) return weight[y * width + x];
    const int64_t edge = width > 2 * kBorder && height > 2 * kBorder ? kBorder : 0;
    return x >= edge && y >= edge && x + edge < width && y + edge < height ? 1.0f : 0.0f;
  }
  // 0 where any of the nine pixels does not count.
  float edge_weight(int64_t x, int64_t y) const {
    if (x < 1 || y < 1 || x + 1 >= width || y + 1 >= height) return 0;
    for (int64_t v = y - 1; v <= y + 1; ++v) {
      for (int64_t u = x - 1; u <= x + 1; ++u) {
        if (weight_at(u, v) == 0) return 0;
      }
    }
    return weight_at(x, y);
  }
};

struct Sums {
  double value = 0, weight = 0;
};

// Rows [begin, end): the slopes of each pixel's term by gx and by gy, times its weight.
Sums edge_rows(const Frame& f, int64_t begin, int64_t end, float* by_x, float* by_y) {
  std::vector<float> rows(static_cast<size_t>(3 * f.width));
  const auto row = [&](int64_t y) { return rows.data() + (y + 3) % 3 * f.width; };
  const auto fill = [&](int64_t y) {
    for (int64_t x = 0; x < f.width; ++x) {
      row(y)[x] = y >= 0 && y < f.height ? f.residual(x, y) : 0.0f;
    }
  };
  fill(begin - 1);
  fill(begin);
  Sums sums;
  for (int64_t y = begin; y < end; ++y) {
    fill(y + 1);
    for (int64_t x = 0; x < f.width; ++x) {
      const float m = f.edge_weight(x, y);
      float slope_x = 0, slope_y = 0;
      if (m != 0) {
        float gx = 0, gy = 0;
        for (int64_t j = 0; j < 3; ++j) {
          for (int64_t i = 0; i < 3; ++i) {
            const float r = row(y + j - 1)[x + i - 1];
            gx += kAcross[j][i] * r;
            gy += kAcross[i][j] * r;
          }
        }
        const float hx = std::sqrt(gx * gx + kSoft * kSoft);
        const float hy = std::sqrt(gy * gy + kSoft * kSoft);
        sums.value += m * ((hx - kSoft) + (hy - kSoft));
        sums.weight += m;
        slope_x = m * gx / hx;
        slope_y = m * gy / hy;
      }
      by_x[y * f.width + x] = slope_x;
      by_y[y * f.width + x] = slope_y;
    }
  }
  return sums;
}

}  // namespace

// edge_loss: adds the gradient of edge_weight / (2 sum m) sum m (|gx| + |gy|) to d_image, where g
// is the Sobel gradient of the luminance's residual, |.| is rounded at 0 and m is the pixel's
// weight, or 0 where one of its neighbours has none. Bindings  step r, control r, image r [3,H,W],
// target r [3,H,W] u8, weight r [H,W] (if params.inputs
//           says so), slopes w [2,H,W] scratch, d_image x [3,H,W], totals x (LossTotals.edge,
//           .edge_weight).
// Test      tests/loss/edge_loss_scenario_test.cpp.
void edge_loss(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  if (!accepted(step, *call.buffer<const Control>(1))) return;
  const auto& params = call.params_as<LossParams>();
  auto* totals = call.buffer<LossTotals>(7);
  totals->edge = totals->edge_weight = 0;
  if (step.loss.edge_weight <= 0) return;
  const Frame f = {call.buffer<const float>(2), call.buffer<const uint8_t>(3),
                   params.inputs & kLossHasWeight ? call.buffer<const float>(4) : nullptr,
                   params.width, params.height};
  const int64_t plane = f.width * f.height;
  float* by_x = call.buffer<float>(5);
  float* by_y = by_x + plane;
  const auto rows_of = [&](uint64_t block) {
    const int64_t begin = static_cast<int64_t>(block) * kRows;
    return std::pair(begin, std::min(begin + kRows, f.height));
  };
  std::vector<Sums> sums(static_cast<size_t>((f.height + kRows - 1) / kRows));
  parallel_blocks(sums.size(), [&](uint64_t block) {
    const auto [begin, end] = rows_of(block);
    sums[block] = edge_rows(f, begin, end, by_x, by_y);
  });
  Sums total;
  for (const Sums& s : sums) {
    total.value += s.value;
    total.weight += s.weight;
  }
  if (total.weight <= 0) return;
  totals->edge_weight = static_cast<float>(total.weight);
  totals->edge = static_cast<float>(step.loss.edge_weight * total.value / (2 * total.weight));
  const float scale = step.loss.edge_weight / (2.0f * static_cast<float>(total.weight));
  auto* d_image = call.buffer<float>(6);
  parallel_blocks(sums.size(), [&](uint64_t block) {
    const auto [begin, end] = rows_of(block);
    for (int64_t y = begin; y < end; ++y) {
      for (int64_t x = 0; x < f.width; ++x) {
        float d = 0;
        for (int64_t j = 0; j < 3; ++j) {
          for (int64_t i = 0; i < 3; ++i) {
            const int64_t u = x - (i - 1), v = y - (j - 1);
            if (u < 0 || v < 0 || u >= f.width || v >= f.height) continue;
            d += kAcross[j][i] * by_x[v * f.width + u] + kAcross[i][j] * by_y[v * f.width + u];
          }
        }
        for (int64_t c = 0; c < 3; ++c)
          d_image[c * plane + y * f.width + x] += scale * kLuma[c] * d;
      }
    }
  });
}

}  // namespace millrace::kernels
