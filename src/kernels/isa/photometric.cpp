// L1 + SSIM of one band of rows of one channel, forward and backward (TRAINING.md 4.1, 4.2):
// separable 11-tap windows with zero padding, pixels by weight or borders of 5 pixels left out of
// the means. A band is taken in strips of a few columns, so that what lies between the two passes
// stays in the nearest cache.
#include "kernels/isa/photometric.h"

#include "kernels/isa/vector.h"

namespace millrace::kernels::MILLRACE_ISA {
namespace {

constexpr int kRadius = 5;
constexpr float kTaps[11] = {0.001028380123898387f,  0.0075987582094967365f, 0.036000773310661316f,
                             0.10936068743467331f,   0.21300552785396576f,   0.26601171493530273f,
                             0.21300552785396576f,   0.10936068743467331f,   0.036000773310661316f,
                             0.0075987582094967365f, 0.001028380123898387f};
constexpr float kC1 = 1e-4f, kC2 = 9e-4f;

constexpr int kStrip = 64;                   // columns
constexpr int kMargin = 8;                   // columns read on either side, at least kRadius
constexpr int kLine = kStrip + 2 * kMargin;  // whole vectors
constexpr int kLines = static_cast<int>(kLossBand) + 2 * kRadius;
static_assert(kStrip % kWidth == 0 && kLine % kWidth == 0 && kMargin >= kRadius);

/// A strip's columns [x - kMargin, x + kStrip + kMargin) of the rows that a band reads, zeros
/// outside the image. All rows are laid out before any is used: a load from fresh stores would
/// wait.
struct Lines {
  alignas(64) float copies[kLines][kLine];
  const float* row[kLines];  // at the strip's first column; null above and below
};

struct Band {
  int width, height;
  int begin, end;   // rows
  int left, right;  // valid columns
  int top, bottom;  // valid rows of the image
};

template <bool kWeighted>
Band band_of(const PhotometricArgs& args, uint32_t band) {
  Band b;
  b.width = static_cast<int>(args.width);
  b.height = static_cast<int>(args.height);
  b.begin = static_cast<int>(band * kLossBand);
  const int end = b.begin + static_cast<int>(kLossBand);
  b.end = end < b.height ? end : b.height;
  const int edge = !kWeighted && b.width > 10 && b.height > 10 ? kRadius : 0;
  b.left = edge;
  b.right = b.width - edge;
  b.top = edge;
  b.bottom = b.height - edge;
  return b;
}

vf from_bytes(const uint8_t* p) {
  typedef uint8_t Bytes __attribute__((vector_size(kWidth)));
  Bytes bytes;
  __builtin_memcpy(&bytes, p, sizeof(bytes));
  return __builtin_convertvector(bytes, vf) * (1.0f / 255.0f);
}

// The values of columns [first, first + n) that the row has, the others zero.
template <class T>
void copy_inside(const T* row, int first, int n, int width, T* out) {
  const int begin = first < 0 ? -first : 0, end = width - first < n ? width - first : n;
  for (int i = 0; i < n; ++i) out[i] = i >= begin && i < end ? row[first + i] : T{};
}

// Lays out rows [begin, end) of `lines`, of which row 0 is row `y` of the plane.
void lay_out(const float* plane, int y, int begin, int end, int x, const Band& b, Lines& lines) {
  const int first = x - kMargin;
  const bool whole = first >= 0 && first + kLine <= b.width;
  for (int i = begin; i < end; ++i) {
    lines.row[i] = nullptr;
    if (y + i < 0 || y + i >= b.height) continue;
    const float* row = plane + int64_t{y + i} * b.width;
    if (!whole) copy_inside(row, first, kLine, b.width, lines.copies[i]);
    lines.row[i] = whole ? row + x : lines.copies[i] + kMargin;
  }
}
void lay_out(const uint8_t* plane, int y, int begin, int end, int x, const Band& b, Lines& lines) {
  const int first = x - kMargin;
  const bool whole = first >= 0 && first + kLine <= b.width;
  for (int i = begin; i < end; ++i) {
    lines.row[i] = nullptr;
    if (y + i < 0 || y + i >= b.height) continue;
    const uint8_t* row = plane + int64_t{y + i} * b.width;
    uint8_t bytes[kLine];
    if (!whole) copy_inside(row, first, kLine, b.width, bytes);
    const uint8_t* from = whole ? row + first : bytes;
    for (int j = 0; j < kLine; j += kWidth) store(lines.copies[i] + j, from_bytes(from + j));
    lines.row[i] = lines.copies[i] + kMargin;
  }
}

// One vector of a row, zero outside the image; and back, inside the image.
vf load_pixels(const float* row, int x, int width) {
  if (x + kWidth <= width) return load(row + x);
  float inside[kWidth];
  copy_inside(row, x, kWidth, width, inside);
  return load(inside);
}
vf load_pixels(const uint8_t* row, int x, int width) {
  if (x + kWidth <= width) return from_bytes(row + x);
  uint8_t inside[kWidth];
  copy_inside(row, x, kWidth, width, inside);
  return from_bytes(inside);
}
void store_pixels(float* row, int x, int width, vf value) {
  if (x + kWidth <= width) return store(row + x, value);
  for (int i = 0; x + i < width; ++i) row[x + i] = value[i];
}

// out[x] = sum_k taps[k] in[x + k - 5] over the strip.
void convolve_row(const float* in, float* out) {
  for (int x = 0; x < kStrip; x += kWidth) {
    vf total = kTaps[5] * load(in + x);
    for (int k = 1; k <= kRadius; ++k)
      total += kTaps[5 - k] * (load(in + x - k) + load(in + x + k));
    store(out + x, total);
  }
}

// The same of u, v, u^2, v^2 and u v, one strip after another.
void convolve_moments(const float* u, const float* v, float* out) {
  for (int x = 0; x < kStrip; x += kWidth) {
    const vf u0 = load(u + x), v0 = load(v + x);
    const vf u_centre = kTaps[5] * u0, v_centre = kTaps[5] * v0;
    vf m[5] = {u_centre, v_centre, u_centre * u0, v_centre * v0, u_centre * v0};
    for (int k = 1; k <= kRadius; ++k) {
      const vf tap = broadcast(kTaps[5 - k]);
      const vf ul = load(u + x - k), ur = load(u + x + k), vl = load(v + x - k),
               vr = load(v + x + k);
      m[0] += tap * (ul + ur);
      m[1] += tap * (vl + vr);
      m[2] += tap * fma(ul, ul, ur * ur);
      m[3] += tap * fma(vl, vl, vr * vr);
      m[4] += tap * fma(ul, vl, ur * vr);
    }
    for (int k = 0; k < 5; ++k) store(out + k * kStrip + x, m[k]);
  }
}

// One vector of a vertical convolution; `first` is the row 5 above, rows are `stride` apart.
vf convolve_column(const float* first, int stride) {
  vf total = kTaps[5] * load(first + 5 * stride);
  for (int k = 1; k <= kRadius; ++k) {
    total += kTaps[5 - k] * (load(first + (5 - k) * stride) + load(first + (5 + k) * stride));
  }
  return total;
}

void zero(float* p, int n) {
  for (int i = 0; i < n; ++i) p[i] = 0.0f;
}

vi inside(int x, const Band& b) {
  const vi column = first_lanes() + x;
  return (column >= b.left) & (column < b.right);
}

/// The weight of the pixels from `x` on, and where it is not zero.
template <bool kWeighted>
vf weight_at(const PhotometricArgs& args, int x, int y, const Band& b, vi& valid) {
  if constexpr (!kWeighted) {
    valid = inside(x, b);
    return broadcast(1.0f);
  }
  const vf weight = load_pixels(args.weight + int64_t{y} * b.width, x, b.width);
  valid = weight != 0.0f;
  return weight;
}

// kRaw: contrast and structure are of the raw image.
template <bool kWeighted, bool kRaw>
void forward_band(const PhotometricArgs& args, uint32_t channel, uint32_t band, float* sums) {
  const Band b = band_of<kWeighted>(args, band);
  const int width = b.width;
  const int64_t plane = int64_t{b.width} * b.height;
  const float* image = args.image + channel * plane;
  const uint8_t* target = args.target + channel * plane;
  const auto map_row = [&](int map, int y) {
    return args.maps + (3 * map + static_cast<int>(channel)) * plane + int64_t{y} * width;
  };
  for (int y = b.begin; y < b.end; ++y) {
    if (y >= b.top && y < b.bottom) continue;
    for (int m = 0; m < (kRaw ? 4 : 3); ++m) zero(map_row(m, y), width);
  }
  const int first_row = b.begin > b.top ? b.begin : b.top;
  const int last_row = b.end < b.bottom ? b.end : b.bottom;
  vf ssim_sum = vf{}, l1_sum = vf{}, mse_sum = vf{};
  // Means and second moments of both images, along rows: of the band and 5 rows on either side.
  constexpr int kStride = (kRaw ? 6 : 5) * kStrip;
  alignas(64) float along[kLines * kStride];
  Lines u, v;
  [[maybe_unused]] Lines raw;
  for (int x0 = 0; x0 < width && first_row < last_row; x0 += kStrip) {
    const int begin = first_row - b.begin, end = last_row - b.begin + 2 * kRadius;
    lay_out(image, b.begin - kRadius, begin, end, x0, b, u);
    lay_out(target, b.begin - kRadius, begin, end, x0, b, v);
    if constexpr (kRaw) {
      lay_out(args.raw + channel * plane, b.begin - kRadius, begin, end, x0, b, raw);
    }
    for (int i = begin; i < end; ++i) {
      if (u.row[i]) {
        convolve_moments(kRaw ? raw.row[i] : u.row[i], v.row[i], along + i * kStride);
        if constexpr (kRaw) convolve_row(u.row[i], along + i * kStride + 5 * kStrip);
      } else {
        zero(along + i * kStride, kStride);
      }
    }
    for (int y = first_row; y < last_row; ++y) {
      const float* above = along + (y - b.begin) * kStride;
      for (int x = x0; x < x0 + kStrip && x < width; x += kWidth, above += kWidth) {
        const vf mu1 = convolve_column(above, kStride);
        const vf mu2 = convolve_column(above + kStrip, kStride);
        const vf s11 = convolve_column(above + 2 * kStrip, kStride) - mu1 * mu1;
        const vf s22 = convolve_column(above + 3 * kStrip, kStride) - mu2 * mu2;
        const vf s12 = convolve_column(above + 4 * kStrip, kStride) - mu1 * mu2;
        // The mean whose luminance is compared.
        vf mu = mu1;
        if constexpr (kRaw) mu = convolve_column(above + 5 * kStrip, kStride);
        const vf a = mu * mu + mu2 * mu2 + kC1, bb = s11 + s22 + kC2;
        const vf c = 2.0f * mu * mu2 + kC1, d = 2.0f * s12 + kC2;
        const vf inv_ab = 1.0f / (a * bb);
        const vf ssim = c * d * inv_ab;
        const int line = y - b.begin + kRadius;
        const vf difference = abs(load(u.row[line] + (x - x0)) - load(v.row[line] + (x - x0)));
        vf d_mu;
        if constexpr (kRaw) {
          d_mu = 2.0f * inv_ab * (mu1 * ssim * a - mu2 * c);
        } else {
          // 1 / bb - 1 / a = (a - bb) / (a bb)
          d_mu = 2.0f * inv_ab * (mu2 * (d - c) + mu1 * ssim * (a - bb));
        }
        vi valid;
        const vf weight = weight_at<kWeighted>(args, x, y, b, valid);
        const auto counted = [&](vf value) {
          if constexpr (kWeighted) value *= weight;
          return valid ? value : vf{};
        };
        ssim_sum += counted(ssim);
        l1_sum += counted(difference);
        mse_sum += counted(difference * difference);
        store_pixels(map_row(0, y), x, width, counted(d_mu));
        store_pixels(map_row(1, y), x, width, counted(-ssim * (a * inv_ab)));
        store_pixels(map_row(2, y), x, width, counted(2.0f * c * inv_ab));
        if constexpr (kRaw) {
          store_pixels(map_row(3, y), x, width,
                       counted(2.0f * inv_ab * (mu2 * d - mu * ssim * bb)));
        }
      }
    }
  }
  sums[0] = sum(l1_sum);
  sums[1] = sum(ssim_sum);
  sums[2] = sum(mse_sum);
}

enum class Part { Whole, Mean, Raw };
// Mean: the image's part where the rest is of the raw image; Raw: that rest, without L1.
template <bool kWeighted, Part kPart>
void backward_band(const PhotometricArgs& args, uint32_t channel, uint32_t band) {
  constexpr int kMaps = kPart == Part::Mean ? 1 : 3, kFirstMap = kPart == Part::Mean ? 3 : 0;
  const Band b = band_of<kWeighted>(args, band);
  const int width = b.width;
  const int64_t plane = int64_t{b.width} * b.height;
  const float* image = args.image + channel * plane;
  const uint8_t* target = args.target + channel * plane;
  const float count = kWeighted ? args.weight_sum
                                : 3.0f * static_cast<float>(b.right - b.left) *
                                      static_cast<float>(b.bottom - b.top);
  const float l1_scale = (1.0f - args.ssim_weight) / count, ssim_scale = -args.ssim_weight / count;

  constexpr int kStride = kMaps * kStrip;
  alignas(64) float along[kLines * kStride];
  Lines map;
  for (int x0 = 0; x0 < width; x0 += kStrip) {
    const int n_lines = b.end - b.begin + 2 * kRadius;
    for (int m = 0; m < kMaps; ++m) {
      // The maps are zero in the border.
      lay_out(args.maps + (3 * (kFirstMap + m) + static_cast<int>(channel)) * plane,
              b.begin - kRadius, 0, n_lines, x0, b, map);
      for (int i = 0; i < n_lines; ++i) {
        float* out = along + i * kStride + m * kStrip;
        if (map.row[i]) {
          convolve_row(map.row[i], out);
        } else {
          zero(out, kStrip);
        }
      }
    }
    for (int y = b.begin; y < b.end; ++y) {
      const float* above = along + (y - b.begin) * kStride;
      const bool valid_row = y >= b.top && y < b.bottom;
      for (int x = x0; x < x0 + kStrip && x < width; x += kWidth, above += kWidth) {
        float* out = args.d_image + channel * plane + int64_t{y} * width;
        const vf mu = convolve_column(above, kStride);
        const vf u = load_pixels(image + int64_t{y} * width, x, width);
        const vf v = load_pixels(target + int64_t{y} * width, x, width);
        vf ssim;
        if constexpr (kPart == Part::Mean) {
          ssim = ssim_scale * mu;
        } else {
          const vf xx = convolve_column(above + kStrip, kStride);
          const vf xy = convolve_column(above + 2 * kStrip, kStride);
          ssim = ssim_scale * (mu + 2.0f * u * xx + v * xy);
        }
        if constexpr (kPart == Part::Raw) {
          store_pixels(out, x, width, ssim);
          continue;
        }
        vf l1 = u > v ? broadcast(l1_scale) : u < v ? broadcast(-l1_scale) : vf{};
        vi valid;
        const vf weight = weight_at<kWeighted>(args, x, y, b, valid);
        if constexpr (kWeighted) l1 *= weight;
        valid = valid_row ? valid : vi{};
        store_pixels(out, x, width, valid ? ssim + l1 : ssim);
      }
    }
  }
}

}  // namespace

void photometric_forward_band(const PhotometricArgs& args, uint32_t channel, uint32_t band,
                              float* sums) {
  if (args.weight) {
    (args.raw ? forward_band<true, true> : forward_band<true, false>)(args, channel, band, sums);
  } else {
    (args.raw ? forward_band<false, true> : forward_band<false, false>)(args, channel, band, sums);
  }
}

void photometric_backward_band(const PhotometricArgs& args, uint32_t channel, uint32_t band) {
  const auto run = [&]<bool kWeighted>() {
    if (!args.raw) return backward_band<kWeighted, Part::Whole>(args, channel, band);
    if (args.raw_gradient) return backward_band<kWeighted, Part::Raw>(args, channel, band);
    backward_band<kWeighted, Part::Mean>(args, channel, band);
  };
  if (args.weight) {
    run.template operator()<true>();
  } else {
    run.template operator()<false>();
  }
}

}  // namespace millrace::kernels::MILLRACE_ISA
