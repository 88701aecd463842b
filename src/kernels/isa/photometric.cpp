// L1 + SSIM of one band of rows of one channel, forward and backward (TRAINING.md 4.1): separable
// 11-tap windows with zero padding, borders of 5 pixels left out of the means.
#include "kernels/isa/photometric.h"

namespace millrace::kernels::MILLRACE_ISA {
namespace {

constexpr int kRadius = 5;
constexpr float kTaps[11] = {0.001028380123898387f,  0.0075987582094967365f, 0.036000773310661316f,
                             0.10936068743467331f,   0.21300552785396576f,   0.26601171493530273f,
                             0.21300552785396576f,   0.10936068743467331f,   0.036000773310661316f,
                             0.0075987582094967365f, 0.001028380123898387f};
constexpr float kC1 = 1e-4f, kC2 = 9e-4f;

// Rows are padded to whole vectors, with room for the taps on both sides.
uint32_t row_stride(uint32_t width) { return width + 64; }
uint32_t padded(uint32_t width) { return (width + kWidth - 1) / kWidth * kWidth; }

uint32_t border(const PhotometricArgs& args) {
  return args.width > 10 && args.height > 10 ? kRadius : 0;
}

// out[x] = sum_k taps[k] in[x + k - 5]; `in` points at x = 0 and has zeros around it.
void convolve_row(const float* in, float* out, uint32_t n) {
  for (uint32_t x = 0; x < n; x += kWidth) {
    vf total = kTaps[5] * load(in + x);
    for (int k = 1; k <= kRadius; ++k) {
      total += kTaps[5 - k] * (load(in + x - k) + load(in + x + k));
    }
    store(out + x, total);
  }
}

// One vector of a vertical convolution; rows[k] is the row 5 - k above.
vf convolve_column(const float* const* rows, uint32_t x) {
  vf total = kTaps[5] * load(rows[5] + x);
  for (int k = 1; k <= kRadius; ++k) {
    total += kTaps[5 - k] * (load(rows[5 - k] + x) + load(rows[5 + k] + x));
  }
  return total;
}

void zero(float* p, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) p[i] = 0.0f;
}

struct Band {
  uint32_t begin, end;   // rows
  uint32_t left, right;  // valid columns
  uint32_t top, bottom;  // valid rows of the image
};

Band band_of(const PhotometricArgs& args, uint32_t band) {
  Band b;
  b.begin = band * kLossBand;
  b.end = b.begin + kLossBand < args.height ? b.begin + kLossBand : args.height;
  const uint32_t edge = border(args);
  b.left = edge;
  b.right = args.width - edge;
  b.top = edge;
  b.bottom = args.height - edge;
  return b;
}

}  // namespace

void photometric_forward_band(const PhotometricArgs& args, uint32_t channel, uint32_t band,
                              float* sums, float* scratch) {
  const uint32_t width = args.width, stride = row_stride(width), n = padded(width);
  const uint64_t plane = static_cast<uint64_t>(width) * args.height;
  const float* image = args.image + channel * plane;
  const uint8_t* target = args.target + channel * plane;
  const Band b = band_of(args, band);

  // Horizontal pass over the band and 5 rows on either side: mean and second moments of both
  // images.
  float* in[5];
  for (int m = 0; m < 5; ++m) in[m] = scratch + m * stride + 32;
  float* horizontal = scratch + 8 * stride;  // [rows][5][stride]
  for (int m = 0; m < 5; ++m) zero(in[m] - 32, stride);
  const auto row_of = [&](int i, int m) {
    return horizontal + (static_cast<uint64_t>(i) * 5 + static_cast<uint64_t>(m)) * stride;
  };
  const int n_rows = static_cast<int>(b.end - b.begin) + 2 * kRadius;
  for (int i = 0; i < n_rows; ++i) {
    const int y = static_cast<int>(b.begin) + i - kRadius;
    if (y < 0 || y >= static_cast<int>(args.height)) {
      for (int m = 0; m < 5; ++m) zero(row_of(i, m), n);
      continue;
    }
    const float* x_row = image + static_cast<uint64_t>(y) * width;
    const uint8_t* y_row = target + static_cast<uint64_t>(y) * width;
    for (uint32_t x = 0; x < width; ++x) {
      const float u = x_row[x], v = static_cast<float>(y_row[x]) * (1.0f / 255.0f);
      in[0][x] = u;
      in[1][x] = v;
      in[2][x] = u * u;
      in[3][x] = v * v;
      in[4][x] = u * v;
    }
    for (int m = 0; m < 5; ++m) convolve_row(in[m], row_of(i, m), n);
  }

  vf ssim_sum = vf{}, l1_sum = vf{}, mse_sum = vf{};
  float* out[3];
  for (int m = 0; m < 3; ++m) out[m] = scratch + (5 + m) * stride;
  for (uint32_t y = b.begin; y < b.end; ++y) {
    float* map[3];
    for (uint32_t m = 0; m < 3; ++m) {
      map[m] = args.maps + (static_cast<uint64_t>(m) * 3 + channel) * plane +
               static_cast<uint64_t>(y) * width;
    }
    if (y < b.top || y >= b.bottom) {
      for (float* row : map) zero(row, width);
      continue;
    }
    const float* rows[5][11];
    for (int m = 0; m < 5; ++m) {
      for (int k = 0; k < 11; ++k) rows[m][k] = row_of(static_cast<int>(y - b.begin) + k, m);
    }
    // SSIM and |x - y| go through the first two input rows, so that the border can be cut off
    // exactly.
    float* ssim_row = in[0];
    float* l1_row = in[1];
    for (uint32_t x = 0; x < n; x += kWidth) {
      const vf mu1 = convolve_column(rows[0], x), mu2 = convolve_column(rows[1], x);
      const vf s11 = convolve_column(rows[2], x) - mu1 * mu1;
      const vf s22 = convolve_column(rows[3], x) - mu2 * mu2;
      const vf s12 = convolve_column(rows[4], x) - mu1 * mu2;
      const vf a = mu1 * mu1 + mu2 * mu2 + kC1, bb = s11 + s22 + kC2;
      const vf c = 2.0f * mu1 * mu2 + kC1, d = 2.0f * s12 + kC2;
      const vf inv_ab = 1.0f / (a * bb);
      const vf ssim = c * d * inv_ab;
      store(ssim_row + x, ssim);
      store(out[0] + x, 2.0f * mu2 * (d - c) * inv_ab + 2.0f * mu1 * ssim * (1.0f / bb - 1.0f / a));
      store(out[1] + x, -ssim / bb);
      store(out[2] + x, 2.0f * c * inv_ab);
    }
    const float* x_row = image + static_cast<uint64_t>(y) * width;
    const uint8_t* y_row = target + static_cast<uint64_t>(y) * width;
    for (uint32_t x = 0; x < width; ++x) {
      l1_row[x] = __builtin_fabsf(x_row[x] - static_cast<float>(y_row[x]) * (1.0f / 255.0f));
    }
    for (uint32_t x = 0; x < b.left; ++x)
      ssim_row[x] = l1_row[x] = out[0][x] = out[1][x] = out[2][x] = 0;
    for (uint32_t x = b.right; x < n; ++x) {
      ssim_row[x] = l1_row[x] = out[0][x] = out[1][x] = out[2][x] = 0;
    }
    for (uint32_t x = 0; x < n; x += kWidth) {
      ssim_sum += load(ssim_row + x);
      const vf difference = load(l1_row + x);
      l1_sum += difference;
      mse_sum += difference * difference;
    }
    for (int m = 0; m < 3; ++m) {
      for (uint32_t x = 0; x < width; ++x) map[m][x] = out[m][x];
    }
  }
  sums[0] = sum(l1_sum);
  sums[1] = sum(ssim_sum);
  sums[2] = sum(mse_sum);
}

void photometric_backward_band(const PhotometricArgs& args, uint32_t channel, uint32_t band,
                               float* scratch) {
  const uint32_t width = args.width, stride = row_stride(width), n = padded(width);
  const uint64_t plane = static_cast<uint64_t>(width) * args.height;
  const float* image = args.image + channel * plane;
  const uint8_t* target = args.target + channel * plane;
  const Band b = band_of(args, band);
  const float count =
      3.0f * static_cast<float>(b.right - b.left) * static_cast<float>(b.bottom - b.top);
  const float l1_scale = (1.0f - args.ssim_weight) / count, ssim_scale = -args.ssim_weight / count;

  float* in = scratch + 32;
  zero(scratch, stride);
  float* horizontal = scratch + 8 * stride;  // [rows][3][stride]
  const auto row_of = [&](int i, int m) {
    return horizontal + (static_cast<uint64_t>(i) * 3 + static_cast<uint64_t>(m)) * stride;
  };
  const int n_rows = static_cast<int>(b.end - b.begin) + 2 * kRadius;
  for (int i = 0; i < n_rows; ++i) {
    const int y = static_cast<int>(b.begin) + i - kRadius;
    for (uint32_t m = 0; m < 3; ++m) {
      float* out = row_of(i, static_cast<int>(m));
      if (y < 0 || y >= static_cast<int>(args.height)) {
        zero(out, n);
        continue;
      }
      const float* map = args.maps + (static_cast<uint64_t>(m) * 3 + channel) * plane +
                         static_cast<uint64_t>(y) * width;
      for (uint32_t x = 0; x < width; ++x) in[x] = map[x];
      convolve_row(in, out, n);
    }
  }
  float* mu_row = scratch + stride;
  float* xx_row = scratch + 2 * stride;
  float* xy_row = scratch + 3 * stride;
  for (uint32_t y = b.begin; y < b.end; ++y) {
    const float* rows[3][11];
    for (int m = 0; m < 3; ++m) {
      for (int k = 0; k < 11; ++k) rows[m][k] = row_of(static_cast<int>(y - b.begin) + k, m);
    }
    for (uint32_t x = 0; x < n; x += kWidth) {
      store(mu_row + x, convolve_column(rows[0], x));
      store(xx_row + x, convolve_column(rows[1], x));
      store(xy_row + x, convolve_column(rows[2], x));
    }
    const uint64_t row = static_cast<uint64_t>(y) * width;
    const bool valid_row = y >= b.top && y < b.bottom;
    float* d_image = args.d_image + channel * plane + row;
    for (uint32_t x = 0; x < width; ++x) {
      const float u = image[row + x], v = static_cast<float>(target[row + x]) * (1.0f / 255.0f);
      d_image[x] = ssim_scale * (mu_row[x] + 2.0f * u * xx_row[x] + v * xy_row[x]);
      mu_row[x] = u > v ? l1_scale : u < v ? -l1_scale : 0.0f;
    }
    if (!valid_row) continue;
    for (uint32_t x = b.left; x < b.right; ++x) d_image[x] += mu_row[x];
  }
}

}  // namespace millrace::kernels::MILLRACE_ISA
