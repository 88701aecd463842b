// A model that looks like a trained one: clusters of thin Gaussians, a few far away, colours that
// depend on the view. And how far two models are apart.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/gaussian_cloud.h"
#include "base/philox.h"

namespace millrace {

inline GaussianCloud random_model(uint32_t n, int sh_degree = 3) {
  GaussianCloud cloud;
  cloud.sh_degree = sh_degree;
  const auto n_rest = static_cast<uint32_t>(3 * sh_rest_count(sh_degree));
  uint32_t lane = 0;
  uint32_t row = 0;
  const auto normal = [&] {
    const auto words = philox(7, lane++, RandomPurpose::Synthetic, row);
    return normal_pair(words[0], words[1])[0];
  };
  for (row = 0; row < n; ++row) {
    lane = 0;
    const bool is_far = row % 97 == 96;
    for (uint32_t k = 0; k < 3; ++k) {
      const float centre = static_cast<float>((row * 7 + k * 3) % 5) - 2;
      cloud.means.push_back(is_far ? 40 * normal() : centre + 0.3f * normal());
    }
    for (int k = 0; k < 3; ++k) cloud.log_scales.push_back(-3 + 0.7f * normal());
    for (int k = 0; k < 4; ++k) cloud.rotations.push_back(normal());
    cloud.opacities.push_back(2 * normal());
    for (int k = 0; k < 3; ++k) cloud.sh0.push_back(std::clamp(normal(), -3.0f, 3.0f));
    for (uint32_t k = 0; k < n_rest; ++k) cloud.sh_rest.push_back(0.15f * normal());
  }
  return cloud;
}

/// The same without the far ones and with colours that bytes can hold, as a trained model has few
/// of either: formats with one range for many rows render it as it is.
inline GaussianCloud tame_model(uint32_t n, int sh_degree = 3) {
  GaussianCloud cloud = random_model(n, sh_degree);
  for (float& mean : cloud.means) mean = std::clamp(mean, -3.0f, 3.0f);
  for (float& value : cloud.sh0) value *= 0.5f;
  for (float& value : cloud.sh_rest) value *= 0.5f;
  return cloud;
}

/// The largest differences of two models. Each row of `b` is compared with the nearest row of `a`,
/// or with the same row if both are `in_order`.
struct Apart {
  float means = 0, log_scales = 0, rotation_deg = 0, alpha = 0, sh0 = 0, sh_rest = 0;
};
inline Apart apart(const GaussianCloud& a, const GaussianCloud& b, bool in_order = false) {
  Apart most;
  EXPECT_EQ(a.count(), b.count());
  EXPECT_EQ(a.sh_degree, b.sh_degree);
  const auto n_rest = static_cast<size_t>(3 * sh_rest_count(a.sh_degree));
  const auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  for (size_t j = 0; j < b.count(); ++j) {
    size_t i = j;
    float best = INFINITY;
    for (size_t k = 0; k < a.count() && !in_order; ++k) {
      float d2 = 0;
      for (size_t c = 0; c < 3; ++c) {
        const float d = a.means[3 * k + c] - b.means[3 * j + c];
        d2 += d * d;
      }
      if (d2 < best) {
        best = d2;
        i = k;
      }
    }
    const auto widen = [](float& to, float x, float y) { to = std::max(to, std::abs(x - y)); };
    double dot = 0, norm_a = 0, norm_b = 0;
    for (size_t c = 0; c < 4; ++c) {
      const double x = a.rotations[4 * i + c], y = b.rotations[4 * j + c];
      dot += x * y;
      norm_a += x * x;
      norm_b += y * y;
    }
    const double cosine = std::min(1.0, std::abs(dot) / std::sqrt(norm_a * norm_b));
    most.rotation_deg =
        std::max(most.rotation_deg, static_cast<float>(2 * std::acos(cosine) * 180 / 3.14159265));
    for (size_t c = 0; c < 3; ++c) {
      widen(most.means, a.means[3 * i + c], b.means[3 * j + c]);
      widen(most.log_scales, a.log_scales[3 * i + c], b.log_scales[3 * j + c]);
      widen(most.sh0, a.sh0[3 * i + c], b.sh0[3 * j + c]);
    }
    widen(most.alpha, sigmoid(a.opacities[i]), sigmoid(b.opacities[j]));
    for (size_t c = 0; c < n_rest; ++c) {
      widen(most.sh_rest, a.sh_rest[n_rest * i + c], b.sh_rest[n_rest * j + c]);
    }
  }
  return most;
}

}  // namespace millrace
