// ridge_map: where a photograph has thin structures (TRAINING.md 4.3), once per photograph.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/splat_params.h"

namespace millrace::kernels {
namespace {

constexpr int64_t kRows = 32;        // of a band
constexpr int64_t kMostRadius = 10;  // floor(4 sigma + 1/2) of the largest scale
constexpr float kSigmas[4] = {0.8f, 1.2f, 1.8f, 2.5f};
constexpr float kLeastMean = 1e-6f;  // below this the response is rounding: a constant image

/// Taps at 0, 1, ... of a Gaussian (even), its first derivative (odd) and its second (even).
struct Taps {
  int64_t radius;
  float value[kMostRadius + 1], first[kMostRadius + 1], second[kMostRadius + 1];
};
Taps taps_of(float sigma) {
  Taps t = {};
  t.radius = static_cast<int64_t>(4.0f * sigma + 0.5f);
  const float variance = sigma * sigma;
  float sum = 0;
  for (int64_t k = 0; k <= t.radius; ++k) {
    t.value[k] = std::exp(-0.5f * static_cast<float>(k * k) / variance);
    sum += k == 0 ? t.value[k] : 2.0f * t.value[k];
  }
  for (int64_t k = 0; k <= t.radius; ++k) {
    const auto x = static_cast<float>(k);
    t.value[k] /= sum;
    t.first[k] = x * t.value[k] / variance;
    t.second[k] = (x * x / variance - 1.0f) * t.value[k] / variance;
  }
  return t;
}

/// Mirrored at the borders, whose pixels come twice.
int64_t mirrored(int64_t i, int64_t n) {
  i = (i % (2 * n) + 2 * n) % (2 * n);
  return i < n ? i : 2 * n - 1 - i;
}

/// hi (hi - lo) / (hi + lo) of the magnitudes of the Hessian's eigenvalues.
float ridge_of(float xx, float xy, float yy) {
  const float root = std::sqrt((xx - yy) * (xx - yy) + 4.0f * xy * xy);
  const float a = std::abs(0.5f * (xx + yy + root)), b = std::abs(0.5f * (xx + yy - root));
  const float high = std::max(a, b), low = std::min(a, b);
  return high * (high - low) / (high + low + 1e-6f);
}

class Response {
 public:
  Response(const uint8_t* target, int64_t width, int64_t height, float* out)
      : target_(target), width_(width), height_(height), out_(out) {
    for (size_t s = 0; s < taps_.size(); ++s) taps_[s] = taps_of(kSigmas[s]);
  }

  /// Of rows [begin, end); returns its sum.
  double of_rows(int64_t begin, int64_t end) const {
    Lines lines;
    lines.n = end - begin + 2 * kMostRadius;
    lay_out(begin, lines);
    for (size_t s = 0; s < taps_.size(); ++s) {
      along_rows(taps_[s], lines);
      for (int64_t y = begin; y < end; ++y) {
        take_row(s, lines, (y - begin + kMostRadius) * width_, out_ + y * width_);
      }
    }
    double sum = 0;
    for (int64_t i = begin * width_; i < end * width_; ++i) sum += out_[i];
    return sum;
  }

 private:
  struct Lines {
    int64_t n;
    std::vector<float> luminance;              // [n, width + 2 radii]
    std::vector<float> smooth, first, second;  // [n, width]
  };

  float luminance_at(int64_t x, int64_t y) const {
    const int64_t i = y * width_ + x, plane = width_ * height_;
    return (0.2126f * target_[i] + 0.7152f * target_[plane + i] +
            0.0722f * target_[2 * plane + i]) *
           (1.0f / 255.0f);
  }

  void lay_out(int64_t begin, Lines& lines) const {
    const int64_t stride = width_ + 2 * kMostRadius;
    lines.luminance.resize(static_cast<size_t>(lines.n * stride));
    for (auto* plane : {&lines.smooth, &lines.first, &lines.second}) {
      plane->resize(static_cast<size_t>(lines.n * width_));
    }
    float* out = lines.luminance.data();
    for (int64_t line = 0; line < lines.n; ++line) {
      const int64_t y = mirrored(begin + line - kMostRadius, height_);
      for (int64_t i = 0; i < stride; ++i) {
        *out++ = luminance_at(mirrored(i - kMostRadius, width_), y);
      }
    }
  }

  void along_rows(const Taps& t, Lines& lines) const {
    for (int64_t line = kMostRadius - t.radius; line < lines.n - kMostRadius + t.radius; ++line) {
      const float* in = lines.luminance.data() + line * (width_ + 2 * kMostRadius) + kMostRadius;
      float* smooth = lines.smooth.data() + line * width_;
      float* first = lines.first.data() + line * width_;
      float* second = lines.second.data() + line * width_;
      for (int64_t x = 0; x < width_; ++x) {
        smooth[x] = t.value[0] * in[x];
        first[x] = 0;
        second[x] = t.second[0] * in[x];
      }
      for (int64_t k = 1; k <= t.radius; ++k) {
        for (int64_t x = 0; x < width_; ++x) {
          const float both = in[x + k] + in[x - k];
          smooth[x] += t.value[k] * both;
          first[x] += t.first[k] * (in[x + k] - in[x - k]);
          second[x] += t.second[k] * both;
        }
      }
    }
  }

  // The largest response so far of the row that is `middle` in the lines.
  void take_row(size_t scale, const Lines& lines, int64_t middle, float* out) const {
    const Taps& t = taps_[scale];
    const float variance = kSigmas[scale] * kSigmas[scale];
    const float* smooth = lines.smooth.data() + middle;
    const float* first = lines.first.data() + middle;
    const float* second = lines.second.data() + middle;
    for (int64_t x = 0; x < width_; ++x) {
      float xx = t.value[0] * second[x], yy = t.second[0] * smooth[x], xy = 0;
      for (int64_t k = 1; k <= t.radius; ++k) {
        const int64_t above = x - k * width_, below = x + k * width_;
        xx += t.value[k] * (second[below] + second[above]);
        yy += t.second[k] * (smooth[below] + smooth[above]);
        xy += t.first[k] * (first[below] - first[above]);
      }
      const float ridge = ridge_of(variance * xx, variance * xy, variance * yy);
      out[x] = scale == 0 ? ridge : std::max(out[x], ridge);
    }
  }

  const uint8_t* target_;
  int64_t width_, height_;
  float* out_;
  std::array<Taps, 4> taps_;
};

}  // namespace

// ridge_map: S = the largest response over four scales, over its mean; 0 of a constant image.
// Bindings  target r [3,H,W] u8, response w [H,W] scratch, map w [H,W] u8: round(63 min(S, 4)).
// Test      tests/loss/ridge_map_scenario_test.cpp.
void ridge_map(const KernelCall& call) {
  const auto& params = call.params_as<LossParams>();
  const int64_t width = params.width, height = params.height;
  auto* values = call.buffer<float>(1);
  const Response response(call.buffer<const uint8_t>(0), width, height, values);
  std::vector<double> sums(static_cast<size_t>((height + kRows - 1) / kRows));
  parallel_blocks(sums.size(), [&](uint64_t band) {
    const int64_t begin = static_cast<int64_t>(band) * kRows;
    sums[band] = response.of_rows(begin, std::min(begin + kRows, height));
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  const auto n = static_cast<uint64_t>(width * height);
  const auto mean = static_cast<float>(total / static_cast<double>(n));
  const float scale = mean > kLeastMean ? 1.0f / mean : 0.0f;
  auto* map = call.buffer<uint8_t>(2);
  parallel_for(n, 1u << 16, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const float s = std::min(values[i] * scale, kStructureMax);
      map[i] = static_cast<uint8_t>(kStructureUnit * s + 0.5f);
    }
  });
}

}  // namespace millrace::kernels
