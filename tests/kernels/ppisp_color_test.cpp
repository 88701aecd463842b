// PPISP's colour correction: what it does to known colours, and its derivatives against central
// differences in double precision.
#include "kernels/ppisp_color.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace millrace::kernels {
namespace {

// In [-1, 1], from a hash of the index.
double uniform(uint32_t i) {
  uint32_t x = i * 2654435761u + 12345u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return x / 2147483648.0 - 1.0;
}

struct Case {
  double latents[8], rgb[3], d_out[3];
};
Case make_case(uint32_t i, double strength) {
  Case c;
  for (uint32_t k = 0; k < 8; ++k) c.latents[k] = strength * uniform(100 * i + k);
  for (uint32_t k = 0; k < 3; ++k) {
    c.rgb[k] = 0.02 + 0.5 * (uniform(100 * i + 20 + k) + 1.0);
    c.d_out[k] = uniform(100 * i + 30 + k);
  }
  return c;
}

double objective(const double* latents, const double* rgb, const double* d_out) {
  double out[3];
  apply_color(color_map(latents), rgb, out);
  return out[0] * d_out[0] + out[1] * d_out[1] + out[2] * d_out[2];
}

TEST(PpispColor, OfZeroLatentsIsTheIdentity) {
  const double latents[8] = {};
  for (uint32_t i = 0; i < 20; ++i) {
    const Case c = make_case(i, 0.0);
    double out[3];
    apply_color(color_map(latents), c.rgb, out);
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(out[k], c.rgb[k], 1e-7);
  }
}

TEST(PpispColor, MovesTheFourChromaticitiesToTheirTargetsAndKeepsTheIntensity) {
  const double colors[4][3] = {{0, 0, 0.9}, {0.9, 0, 0}, {0, 0.9, 0}, {0.3, 0.3, 0.3}};
  const double from[4][2] = {{0, 0}, {1, 0}, {0, 1}, {1.0 / 3, 1.0 / 3}};
  const Case c = make_case(3, 1.5);
  const ColorMap<double> map = color_map(c.latents);
  for (uint32_t i = 0; i < 4; ++i) {
    double out[3];
    apply_color(map, colors[i], out);
    const Chromaticity<double> offset = color_offset(c.latents, i);
    EXPECT_NEAR(out[0], 0.9 * (from[i][0] + offset.x), 1e-4);
    EXPECT_NEAR(out[1], 0.9 * (from[i][1] + offset.y), 1e-4);
    EXPECT_NEAR(out[0] + out[1] + out[2], 0.9, 1e-4);
  }
}

TEST(PpispColor, OfBlackIsBlackWithoutAnInfiniteGradient) {
  const Case c = make_case(5, 2.0);
  const double black[3] = {};
  double out[3], d_rgb[3], d_map[8];
  const ColorMap<double> map = color_map(c.latents);
  apply_color(map, black, out);
  apply_color_backward(map, black, c.d_out, d_rgb, d_map);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(out[k], 0.0);
    EXPECT_TRUE(std::isfinite(d_rgb[k]));
  }
  for (double d : d_map) EXPECT_EQ(d, 0.0);
}

TEST(PpispColor, GradientsAreCentralDifferencesAlsoWhereALimitHolds) {
  const double h = 1e-6;
  uint32_t held = 0;
  // Strengths from mild to past the horizon.
  for (uint32_t i = 0; i < 120; ++i) {
    const Case c = make_case(i, i < 80 ? 2.0 : 25.0);
    const ColorMap<double> map = color_map(c.latents);
    const double intensity = c.rgb[0] + c.rgb[1] + c.rgb[2];
    const bool blue_held = map.share_blue < kMinColorShare;
    const bool depth_held = map_color(map, c.rgb).z < intensity * kMinColorShare;
    held += blue_held || depth_held;
    // Differences across a limit say nothing.
    if (std::abs(map.share_blue - kMinColorShare) < 1e-2) continue;
    if (std::abs(map_color(map, c.rgb).z - intensity * kMinColorShare) < 1e-2) continue;
    double d_rgb[3], d_map[8], d_latents[8];
    apply_color_backward(map, c.rgb, c.d_out, d_rgb, d_map);
    color_map_backward(map, d_map, d_latents);
    for (int k = 0; k < 8; ++k) {
      Case up = c, down = c;
      up.latents[k] += h;
      down.latents[k] -= h;
      const double difference =
          (objective(up.latents, c.rgb, c.d_out) - objective(down.latents, c.rgb, c.d_out)) /
          (2 * h);
      EXPECT_NEAR(d_latents[k], difference, 1e-5 * (1 + std::abs(difference))) << i << " " << k;
    }
    for (int k = 0; k < 3; ++k) {
      Case up = c, down = c;
      up.rgb[k] += h;
      down.rgb[k] -= h;
      const double difference =
          (objective(c.latents, up.rgb, c.d_out) - objective(c.latents, down.rgb, c.d_out)) /
          (2 * h);
      EXPECT_NEAR(d_rgb[k], difference, 1e-5 * (1 + std::abs(difference))) << i << " " << k;
    }
  }
  EXPECT_GT(held, 5u);
}

TEST(PpispColor, InSinglePrecisionAgreesWithDouble) {
  for (uint32_t i = 0; i < 50; ++i) {
    const Case c = make_case(i, 2.0);
    float latents[8], rgb[3], out[3];
    for (int k = 0; k < 8; ++k) latents[k] = static_cast<float>(c.latents[k]);
    for (int k = 0; k < 3; ++k) rgb[k] = static_cast<float>(c.rgb[k]);
    double expected[3];
    apply_color(color_map(latents), rgb, out);
    apply_color(color_map(c.latents), c.rgb, expected);
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(out[k], expected[k], 1e-5);
  }
}

}  // namespace
}  // namespace millrace::kernels
