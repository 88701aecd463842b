// PPISP of a band of rows (TRAINING.md 5.3), all channels of a pixel at once: exposure and
// fall-off, a homography of (red, green, sum) that keeps the sum, and the response curve. Where a
// value is clamped, gradients pass that point inside.
#include "kernels/isa/ppisp.h"

namespace millrace::kernels::MILLRACE_ISA {
namespace {

constexpr float kSumOffset = 1e-5f;  // keeps the division of black pixels defined
constexpr float kLeast = 1e-6f;      // of what the response takes powers of
constexpr float kLn2 = 0.69314718055994531f;

vf load_pixels(const float* row, int x, int width) {
  if (x + kWidth <= width) return load(row + x);
  float inside[kWidth] = {};
  for (int i = 0; x + i < width; ++i) inside[i] = row[x + i];
  return load(inside);
}
void store_pixels(float* row, int x, int width, vf value) {
  if (x + kWidth <= width) return store(row + x, value);
  for (int i = 0; x + i < width; ++i) row[x + i] = value[i];
}

vf clamp01(vf v) { return min(max(v, vf{}), broadcast(1.0f)); }
// `d` where descent along it leads back into [0,1].
vf pass_inside(vf value, vf d) {
  return ((value > 1.0f) & (d < 0.0f)) | ((value < 0.0f) & (d > 0.0f)) ? vf{} : d;
}

/// Where a pixel is for the fall-off of one channel.
struct Place {
  vf u, v, r2;   // from the centre, in longer sides
  vf unclamped;  // fall-off
};
Place place_of(const float* vignetting, vf u, vf v) {
  Place p;
  p.u = u - vignetting[0];
  p.v = v - vignetting[1];
  p.r2 = p.u * p.u + p.v * p.v;
  p.unclamped = 1.0f + p.r2 * (vignetting[2] + p.r2 * (vignetting[3] + p.r2 * vignetting[4]));
  return p;
}

/// The homography at one pixel: out = scale (x, y, z - x - y).
struct Colour {
  vf sum;
  vf x, y, z;  // z clamped to at least 0
  vf unclamped_z, inv_z, scale;
};
Colour colour_of(const float* h, const vf* c) {
  Colour m;
  m.sum = c[0] + c[1] + c[2];
  m.x = h[0] * c[0] + h[1] * c[1] + h[2] * m.sum;
  m.y = h[3] * c[0] + h[4] * c[1] + h[5] * m.sum;
  m.unclamped_z = h[6] * c[0] + h[7] * c[1] + m.sum;
  m.z = max(m.unclamped_z, vf{});
  m.inv_z = 1.0f / (m.z + kSumOffset);
  m.scale = (m.sum + kSumOffset) * m.inv_z;
  return m;
}
void apply(const Colour& m, vf* out) {
  out[0] = m.scale * m.x;
  out[1] = m.scale * m.y;
  out[2] = m.scale * (m.z - m.x - m.y);
}

/// One channel's response at one pixel.
struct Curve {
  vi is_low;    // up to the centre
  vf base;      // x / centre, or (1 - x) / (1 - centre)
  vf log_base;  // natural logarithm
  vf part;      // gain or 1 - gain, times base to its exponent
  vf y, log_y;  // before gamma
  vf out;
};
Curve curve_of(const float* r, vf c) {
  const float gain = r[0], toe = r[1], shoulder = r[2], gamma = r[3], centre = r[4];
  const vf x = min(max(c, broadcast(kLeast)), broadcast(1.0f));
  Curve k;
  k.is_low = x <= centre;
  const vf low = x * (1.0f / centre);
  const vf high = max(1.0f - x, broadcast(kLeast)) * (1.0f / (1.0f - centre));
  k.base = k.is_low ? low : high;
  k.log_base = kLn2 * log2(k.base);
  const vf exponent = k.is_low ? broadcast(toe) : broadcast(shoulder);
  const vf weight = k.is_low ? broadcast(gain) : broadcast(1.0f - gain);
  k.part = weight * exp(exponent * k.log_base);
  k.y = max(k.is_low ? k.part : 1.0f - k.part, broadcast(1e-12f));
  k.log_y = kLn2 * log2(k.y);
  k.out = exp(gamma * k.log_y);
  return k;
}

// d_x from d_out; adds to the five sums of the channel.
vf curve_backward(const float* r, vf c, vf d_out, vf* sums) {
  const float toe = r[1], shoulder = r[2], gamma = r[3], centre = r[4];
  const Curve k = curve_of(r, c);
  const vf d_log = d_out * k.out;
  const vf d_y = d_log * gamma / k.y;
  // y = part below the centre, 1 - part above.
  const vf d_part = (k.is_low ? d_y : -d_y) * k.part;  // times part
  const float inv_gain = 1.0f / r[0], inv_rest = 1.0f / (1.0f - r[0]);
  sums[0] += d_part * (k.is_low ? broadcast(inv_gain) : broadcast(-inv_rest));
  const vf by_exponent = d_part * k.log_base;
  sums[1] += k.is_low ? by_exponent : vf{};
  sums[2] += k.is_low ? vf{} : by_exponent;
  sums[3] += d_log * k.log_y;
  const vf by_log_base = d_part * (k.is_low ? broadcast(toe) : broadcast(shoulder));
  sums[4] +=
      by_log_base * (k.is_low ? broadcast(-1.0f / centre) : broadcast(1.0f / (1.0f - centre)));
  const vf step = k.is_low ? broadcast(1.0f / centre) : broadcast(-1.0f / (1.0f - centre));
  return by_log_base * step / k.base;
}

/// What a band's pixels share.
struct Rows {
  int width, begin, end;
  int64_t plane;
  float inv_side, half_width, half_height;
};
Rows rows_of(const PpispArgs& args, uint32_t band) {
  Rows r;
  r.width = static_cast<int>(args.width);
  const int height = static_cast<int>(args.height);
  r.begin = static_cast<int>(band * kPpispBand);
  r.end = r.begin + static_cast<int>(kPpispBand) < height ? r.begin + static_cast<int>(kPpispBand)
                                                          : height;
  r.plane = int64_t{r.width} * height;
  r.inv_side = 1.0f / static_cast<float>(r.width > height ? r.width : height);
  r.half_width = 0.5f * static_cast<float>(r.width);
  r.half_height = 0.5f * static_cast<float>(height);
  return r;
}
vf columns(const Rows& r, int x) {
  const vf column = __builtin_convertvector(first_lanes() + x, vf) + 0.5f;
  return (column - r.half_width) * r.inv_side;
}
vf line(const Rows& r, int y) {
  return broadcast((static_cast<float>(y) + 0.5f - r.half_height) * r.inv_side);
}

}  // namespace

void ppisp_forward_band(const PpispArgs& args, uint32_t band) {
  const Rows r = rows_of(args, band);
  const PpispMap& map = args.map;
  for (int y = r.begin; y < r.end; ++y) {
    const vf v = line(r, y);
    for (int x = 0; x < r.width; x += kWidth) {
      const vf u = columns(r, x);
      vf c[3], out[3];
      for (int k = 0; k < 3; ++k) {
        const float* row = args.image + k * r.plane + int64_t{y} * r.width;
        c[k] = load_pixels(row, x, r.width) * map.gain *
               clamp01(place_of(map.vignetting[k], u, v).unclamped);
      }
      apply(colour_of(map.homography, c), out);
      for (int k = 0; k < 3; ++k) {
        float* row = args.corrected + k * r.plane + int64_t{y} * r.width;
        const vf value = map.has_response ? curve_of(map.response[k], out[k]).out : clamp01(out[k]);
        store_pixels(row, x, r.width, value);
      }
    }
  }
}

void ppisp_backward_band(const PpispArgs& args, uint32_t band, float* sums) {
  const Rows r = rows_of(args, band);
  const PpispMap& map = args.map;
  const float* h = map.homography;
  vf total[kPpispSums] = {};
  vf* const by_vignetting = total + 1;
  vf* const by_homography = by_vignetting + kPpispVignetting;
  vf* const by_response = by_homography + 8;
  for (int y = r.begin; y < r.end; ++y) {
    const vf v = line(r, y);
    for (int x = 0; x < r.width; x += kWidth) {
      const vf u = columns(r, x);
      vf exposed[3], c[3], out[3], d[3];
      Place place[3];
      for (int k = 0; k < 3; ++k) {
        const int64_t at = k * r.plane + int64_t{y} * r.width;
        place[k] = place_of(map.vignetting[k], u, v);
        exposed[k] = load_pixels(args.image + at, x, r.width) * map.gain;
        c[k] = exposed[k] * clamp01(place[k].unclamped);
        d[k] = load_pixels(args.d_image + at, x, r.width);
      }
      const Colour m = colour_of(h, c);
      apply(m, out);
      for (int k = 0; k < 3; ++k) {
        d[k] = pass_inside(out[k], d[k]);
        if (map.has_response)
          d[k] = curve_backward(map.response[k], out[k], d[k], by_response + 5 * k);
      }
      const vf d_scale = d[0] * m.x + d[1] * m.y + d[2] * (m.z - m.x - m.y);
      const vf d_x = m.scale * (d[0] - d[2]), d_y = m.scale * (d[1] - d[2]);
      const vf d_z = m.unclamped_z > 0.0f ? m.scale * (d[2] - d_scale * m.inv_z) : vf{};
      by_homography[0] += d_x * c[0];
      by_homography[1] += d_x * c[1];
      by_homography[2] += d_x * m.sum;
      by_homography[3] += d_y * c[0];
      by_homography[4] += d_y * c[1];
      by_homography[5] += d_y * m.sum;
      by_homography[6] += d_z * c[0];
      by_homography[7] += d_z * c[1];
      const vf d_sum = d_scale * m.inv_z + h[2] * d_x + h[5] * d_y + d_z;
      const vf d_c[3] = {h[0] * d_x + h[3] * d_y + h[6] * d_z + d_sum,
                         h[1] * d_x + h[4] * d_y + h[7] * d_z + d_sum, d_sum};
      for (int k = 0; k < 3; ++k) {
        const Place& p = place[k];
        const float* alpha = map.vignetting[k] + 2;
        total[0] += d_c[k] * c[k];
        const vf d_fall_off = pass_inside(p.unclamped, d_c[k] * exposed[k]);
        const vf d_r2 = d_fall_off * (alpha[0] + p.r2 * (2.0f * alpha[1] + 3.0f * alpha[2] * p.r2));
        vf* const sum = by_vignetting + 5 * k;
        sum[0] -= 2.0f * d_r2 * p.u;
        sum[1] -= 2.0f * d_r2 * p.v;
        sum[2] += d_fall_off * p.r2;
        sum[3] += d_fall_off * p.r2 * p.r2;
        sum[4] += d_fall_off * p.r2 * p.r2 * p.r2;
        store_pixels(args.d_image + k * r.plane + int64_t{y} * r.width, x, r.width,
                     d_c[k] * clamp01(p.unclamped) * map.gain);
      }
    }
  }
  for (uint32_t k = 0; k < kPpispSums; ++k) sums[k] = sum(total[k]);
}

}  // namespace millrace::kernels::MILLRACE_ISA
