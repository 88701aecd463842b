// PPISP's colour correction: a homography of chromaticities, told by where it moves four of them,
// that keeps the intensity r + g + b; and its derivatives. T is float, double or a vector of
// floats: no standard library here, since files of every instruction set include this one. GPU
// twin: slang/ppisp_color.slang. Source: NVIDIA, PPISP (2026), colour correction; TRAINING.md 5.3.
#pragma once

#include <stdint.h>

namespace millrace::kernels {

/// Latents of a correction: x, y of the blue, red, green and neutral chromaticity, decorrelated.
constexpr uint32_t kColorLatents = 8;
/// Parts of a ColorMap that pixels give gradients to.
constexpr uint32_t kColorMapParts = 8;

/// Offsets of each chromaticity from its two latents: symmetric blocks (xx, xy, yy).
constexpr float kColorBlocks[4][3] = {{0.0480542f, -0.0043631f, 0.0481283f},
                                      {0.0580570f, -0.0179872f, 0.0431061f},
                                      {0.0433336f, -0.0180537f, 0.0580500f},
                                      {0.0128369f, -0.0034654f, 0.0128158f}};
/// The least share of blue in the neutral point and of the depth of a mapped colour: a homography
/// beyond has its horizon among the colours. Gradients of what is held at a limit are 0.
constexpr float kMinColorShare = 1e-3f;
constexpr float kColorDepthEpsilon = 1e-5f;

template <class T>
struct Chromaticity {
  T x, y;
};

/// What one correction's pixels share. The homography maps (r, g, r + g + b) to
/// b (blue, 1) + red_ratio r (red, 1) + green_ratio g (green, 1).
template <class T>
struct ColorMap {
  Chromaticity<T> blue, red, green;  // where pure blue, red and green go
  T red_ratio, green_ratio;          // of their weights to blue's
  // For the way back alone.
  Chromaticity<T> neutral;
  T share_blue, share_red, share_green;  // twice the triangles' areas at the neutral point
};

/// Twice the signed area of the triangle (a, b, c).
template <class T>
static inline T twice_area(Chromaticity<T> a, Chromaticity<T> b, Chromaticity<T> c) {
  return (b.x - a.x) * (c.y - a.y) - (c.x - a.x) * (b.y - a.y);
}
/// Adds d times the derivative of twice_area(a, b, c) to those of its corners.
template <class T>
static inline void twice_area_backward(Chromaticity<T> a, Chromaticity<T> b, Chromaticity<T> c, T d,
                                       Chromaticity<T>& d_a, Chromaticity<T>& d_b,
                                       Chromaticity<T>& d_c) {
  d_a.x += d * (b.y - c.y);
  d_a.y += d * (c.x - b.x);
  d_b.x += d * (c.y - a.y);
  d_b.y += d * (a.x - c.x);
  d_c.x += d * (a.y - b.y);
  d_c.y += d * (b.x - a.x);
}

/// The offset that latents 2 i and 2 i + 1 stand for.
template <class T>
static inline Chromaticity<T> color_offset(const T* latents, uint32_t i) {
  const float* k = kColorBlocks[i];
  return {latents[2 * i] * k[0] + latents[2 * i + 1] * k[1],
          latents[2 * i] * k[1] + latents[2 * i + 1] * k[2]};
}
template <class T>
static inline void color_offset_backward(Chromaticity<T> d, uint32_t i, T* d_latents) {
  const float* k = kColorBlocks[i];
  d_latents[2 * i] = d.x * k[0] + d.y * k[1];
  d_latents[2 * i + 1] = d.x * k[1] + d.y * k[2];
}

template <class T>
static inline T at_least_share(T x) {
  const T limit = T{} + kMinColorShare;
  return x > limit ? x : limit;
}

/// The correction of `latents` [8]; the identity where all are 0.
template <class T>
static inline ColorMap<T> color_map(const T* latents) {
  ColorMap<T> map;
  map.blue = color_offset(latents, 0);
  map.red = color_offset(latents, 1);
  map.red.x = map.red.x + 1.0f;
  map.green = color_offset(latents, 2);
  map.green.y = map.green.y + 1.0f;
  map.neutral = color_offset(latents, 3);
  map.neutral.x = map.neutral.x + 1.0f / 3.0f;
  map.neutral.y = map.neutral.y + 1.0f / 3.0f;
  // Barycentric coordinates of the neutral point: grey goes there.
  map.share_blue = twice_area(map.neutral, map.red, map.green);
  map.share_red = twice_area(map.blue, map.neutral, map.green);
  map.share_green = twice_area(map.blue, map.red, map.neutral);
  const T blue = at_least_share(map.share_blue);
  map.red_ratio = map.share_red / blue;
  map.green_ratio = map.share_green / blue;
  return map;
}

/// d_latents [8] from `d_map` [8], the gradients of blue, red and green x, y and of the two ratios,
/// in ColorMap's order.
template <class T>
static inline void color_map_backward(const ColorMap<T>& map, const T* d_map, T* d_latents) {
  Chromaticity<T> d_blue = {d_map[0], d_map[1]}, d_red = {d_map[2], d_map[3]};
  Chromaticity<T> d_green = {d_map[4], d_map[5]}, d_neutral = {};
  const T blue = at_least_share(map.share_blue);
  const T d_share = -(d_map[6] * map.red_ratio + d_map[7] * map.green_ratio) / blue;
  const T d_share_blue = map.share_blue > T{} + kMinColorShare ? d_share : T{};
  twice_area_backward(map.neutral, map.red, map.green, d_share_blue, d_neutral, d_red, d_green);
  twice_area_backward(map.blue, map.neutral, map.green, T(d_map[6] / blue), d_blue, d_neutral,
                      d_green);
  twice_area_backward(map.blue, map.red, map.neutral, T(d_map[7] / blue), d_blue, d_red, d_neutral);
  color_offset_backward(d_blue, 0, d_latents);
  color_offset_backward(d_red, 1, d_latents);
  color_offset_backward(d_green, 2, d_latents);
  color_offset_backward(d_neutral, 3, d_latents);
}

/// A colour between the homography and the return to its intensity.
template <class T>
struct MappedColor {
  T x, y, z;  // homogeneous
  T depth;    // z, at least a share of the intensity
  T scale;    // intensity / depth, both with an epsilon
};
template <class T>
static inline MappedColor<T> map_color(const ColorMap<T>& map, const T* rgb) {
  MappedColor<T> mapped;
  const T red = map.red_ratio * rgb[0], green = map.green_ratio * rgb[1];
  const T intensity = rgb[0] + rgb[1] + rgb[2];
  mapped.x = rgb[2] * map.blue.x + red * map.red.x + green * map.green.x;
  mapped.y = rgb[2] * map.blue.y + red * map.red.y + green * map.green.y;
  mapped.z = rgb[2] + red + green;
  const T least = intensity * kMinColorShare;
  mapped.depth = mapped.z > least ? mapped.z : least;
  mapped.scale = (intensity + kColorDepthEpsilon) / (mapped.depth + kColorDepthEpsilon);
  return mapped;
}

/// out [3] = `rgb` [3] corrected; components of `rgb` are not negative. `out` may be `rgb`.
template <class T>
static inline void apply_color(const ColorMap<T>& map, const T* rgb, T* out) {
  const MappedColor<T> mapped = map_color(map, rgb);
  const T red = mapped.scale * mapped.x, green = mapped.scale * mapped.y;
  out[0] = red;
  out[1] = green;
  out[2] = mapped.scale * mapped.z - red - green;
}

/// d_rgb [3] and d_map [8] from d_out [3] and the same rgb; d_rgb may be d_out.
template <class T>
static inline void apply_color_backward(const ColorMap<T>& map, const T* rgb, const T* d_out,
                                        T* d_rgb, T* d_map) {
  const MappedColor<T> mapped = map_color(map, rgb);
  const T d_red = d_out[0] - d_out[2], d_green = d_out[1] - d_out[2], d_third = d_out[2];
  const T d_scale = d_red * mapped.x + d_green * mapped.y + d_third * mapped.z;
  const T inverse = 1.0f / (mapped.depth + kColorDepthEpsilon);
  const T d_x = d_red * mapped.scale, d_y = d_green * mapped.scale;
  const T d_depth = -d_scale * mapped.scale * inverse;
  const T intensity = rgb[0] + rgb[1] + rgb[2];
  const T d_free = mapped.z > intensity * kMinColorShare ? d_depth : T{};
  const T d_z = d_third * mapped.scale + d_free;
  // Of the intensity: where the depth is held, it follows the intensity.
  const T d_intensity = d_scale * inverse + (d_depth - d_free) * kMinColorShare;
  const T d_weight_red = d_x * map.red.x + d_y * map.red.y + d_z;
  const T d_weight_green = d_x * map.green.x + d_y * map.green.y + d_z;
  const T red = map.red_ratio * rgb[0], green = map.green_ratio * rgb[1];
  d_map[0] = d_x * rgb[2];
  d_map[1] = d_y * rgb[2];
  d_map[2] = d_x * red;
  d_map[3] = d_y * red;
  d_map[4] = d_x * green;
  d_map[5] = d_y * green;
  d_map[6] = d_weight_red * rgb[0];
  d_map[7] = d_weight_green * rgb[1];
  d_rgb[0] = d_weight_red * map.red_ratio + d_intensity;
  d_rgb[1] = d_weight_green * map.green_ratio + d_intensity;
  d_rgb[2] = d_x * map.blue.x + d_y * map.blue.y + d_z + d_intensity;
}

}  // namespace millrace::kernels
