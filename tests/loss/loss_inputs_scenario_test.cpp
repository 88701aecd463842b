// The photometric loss with weights, with a raw image beside the corrected one, and its error map:
// against a direct float64 computation and its finite differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "loss/loss_bench.h"

namespace millrace::test {
namespace {

constexpr double kTaps[11] = {0.001028380123898387,  0.0075987582094967365, 0.036000773310661316,
                              0.10936068743467331,   0.21300552785396576,   0.26601171493530273,
                              0.21300552785396576,   0.10936068743467331,   0.036000773310661316,
                              0.0075987582094967365, 0.001028380123898387};
constexpr double kC1 = 1e-4, kC2 = 9e-4;

struct Ssim {
  double luminance, contrast;
};

// At (x, y) of a channel: the luminance of `image` and the contrast and structure of `raw`.
Ssim ssim_at(const LossCase& c, const std::vector<double>& image, const std::vector<double>& raw,
             size_t channel, int x, int y) {
  double mu = 0, mr = 0, my = 0, rr = 0, yy = 0, ry = 0;
  for (int j = -5; j <= 5; ++j) {
    for (int i = -5; i <= 5; ++i) {
      const int u = x + i, v = y + j;
      if (u < 0 || v < 0 || u >= static_cast<int>(c.width) || v >= static_cast<int>(c.height)) {
        continue;
      }
      const size_t at = channel * c.n() + static_cast<size_t>(v) * c.width + static_cast<size_t>(u);
      const double w = kTaps[i + 5] * kTaps[j + 5], r = raw[at], t = c.target[at] / 255.0;
      mu += w * image[at];
      mr += w * r;
      my += w * t;
      rr += w * r * r;
      yy += w * t * t;
      ry += w * r * t;
    }
  }
  return {(2 * mu * my + kC1) / (mu * mu + my * my + kC1),
          (2 * (ry - mr * my) + kC2) / ((rr - mr * mr) + (yy - my * my) + kC2)};
}

bool is_border(const LossCase& c, size_t pixel) {
  const size_t x = pixel % c.width, y = pixel / c.width;
  if (c.width <= 10 || c.height <= 10) return false;
  return x < 5 || y < 5 || x + 5 >= c.width || y + 5 >= c.height;
}

// Whether the pixel counts, and how much.
double weight_of(const LossCase& c, size_t pixel) {
  if (!c.weight.empty()) return c.weight[pixel];
  return is_border(c, pixel) ? 0 : 1;
}

// TRAINING.md 4.1, 4.2 and 4.4, tap by tap.
double reference_loss(const LossCase& c, const std::vector<double>& image,
                      const std::vector<double>& raw) {
  double sum = 0, base = 0;
  for (size_t i = 0; i < c.n(); ++i) {
    const double weight = weight_of(c, i);
    base += weight;
    if (weight == 0) continue;
    for (size_t channel = 0; channel < 3; ++channel) {
      const size_t at = channel * c.n() + i;
      const Ssim s = ssim_at(c, image, raw, channel, static_cast<int>(i % c.width),
                             static_cast<int>(i / c.width));
      sum += weight * ((1 - c.step.ssim_weight) * std::abs(image[at] - c.target[at] / 255.0) +
                       c.step.ssim_weight * (1 - s.luminance * s.contrast));
    }
  }
  if (!c.weight.empty()) base = c.totals.base;
  return sum / (3 * base);
}

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// Compares every seventh element of a gradient with central differences of the reference.
void expect_gradient(const LossCase& c, bool of_raw, const std::vector<float>& got) {
  constexpr double kStep = 1e-5;
  std::vector<double> image = doubles(c.image), raw = doubles(c.with_raw ? c.raw : c.image);
  const auto loss = [&] { return reference_loss(c, image, c.with_raw ? raw : image); };
  std::vector<double>& moved = of_raw ? raw : image;
  std::vector<std::pair<size_t, double>> expected;
  double largest = 0;
  for (size_t i = 0; i < moved.size(); i += 7) {
    const double at = moved[i];
    moved[i] = at + kStep;
    const double above = loss();
    moved[i] = at - kStep;
    const double below = loss();
    moved[i] = at;
    expected.emplace_back(i, (above - below) / (2 * kStep));
    largest = std::max(largest, std::abs(expected.back().second));
  }
  ASSERT_GT(largest, 0);
  for (const auto& [i, gradient] : expected) {
    EXPECT_NEAR(got[i], gradient, 1e-3 * std::max(std::abs(gradient), 1e-2 * largest))
        << (of_raw ? "raw" : "image") << " element " << i;
  }
}

// Weights from 0 to 3 with holes, whose base sum is another.
LossCase weighted_case(uint32_t width, uint32_t height) {
  LossCase c(width, height);
  double base = 0, sum = 0;
  for (uint32_t i = 0; i < c.n(); ++i) {
    const float weight = random_at(5, i) < 0.3f ? 0.0f : 3.0f * random_at(6, i);
    c.weight.push_back(weight);
    base += 0.6 * weight;
    sum += weight;
  }
  c.totals.base = static_cast<float>(base);
  c.totals.weight = static_cast<float>(sum);
  return c;
}

TEST(WeightedLoss, ValueAndGradientAreThoseOfFiniteDifferences) {
  for (const auto& [width, height] : {std::pair{17u, 14u}, {9u, 23u}}) {
    const LossCase c = weighted_case(width, height);
    const LossOutput got = device_loss(c);
    const std::vector<double> image = doubles(c.image);
    EXPECT_NEAR(got.metrics.loss, reference_loss(c, image, image), 1e-5);
    expect_gradient(c, false, got.d_image);
  }
}

TEST(WeightedLoss, ReportsMeansByWeight) {
  const LossCase c = weighted_case(37, 41);
  const LossOutput got = device_loss(c);
  double l1 = 0, mse = 0, sum = 0;
  for (size_t i = 0; i < 3 * c.n(); ++i) {
    const double weight = c.weight[i % c.n()], d = c.image[i] - c.target[i] / 255.0;
    l1 += weight * std::abs(d);
    mse += weight * d * d;
    sum += weight;
  }
  EXPECT_NEAR(got.metrics.l1, l1 / sum, 1e-5);
  EXPECT_NEAR(got.metrics.mse, mse / sum, 1e-5);
}

TEST(WeightedLoss, OfOnesInsideTheBorderIsThePlainLossBitForBit) {
  LossCase c(75, 43);
  const LossOutput plain = device_loss(c);
  for (size_t i = 0; i < c.n(); ++i) c.weight.push_back(is_border(c, i) ? 0.0f : 1.0f);
  c.totals.base = c.totals.weight = 65 * 33;
  const LossOutput weighted = device_loss(c);
  EXPECT_EQ(weighted.metrics.loss, plain.metrics.loss);
  EXPECT_EQ(weighted.metrics.ssim, plain.metrics.ssim);
  EXPECT_EQ(weighted.metrics.l1, plain.metrics.l1);
  EXPECT_EQ(weighted.d_image, plain.d_image);
}

TEST(WeightedLoss, EmphasisOfAllPixelsScalesTheLossAndIsNotDividedAway) {
  LossCase c = weighted_case(40, 33);
  const LossOutput before = device_loss(c);
  for (float& weight : c.weight) weight *= 4;  // 1 + gamma S = 4 everywhere
  c.totals.weight *= 4;
  const LossOutput after = device_loss(c);
  EXPECT_EQ(after.metrics.loss, 4 * before.metrics.loss);
  for (size_t i = 0; i < 3 * c.n(); ++i) ASSERT_EQ(after.d_image[i], 4 * before.d_image[i]);
}

TEST(WeightedLoss, OfNoPixelIsZeroAndSoIsItsGradient) {
  LossCase c(30, 20);
  c.weight.assign(c.n(), 0.0f);
  c.totals.base = c.totals.weight = 0;
  const LossOutput got = device_loss(c);
  EXPECT_EQ(got.metrics.loss, 0.0f);
  for (const float g : got.d_image) ASSERT_EQ(g, 0.0f);
}

TEST(DecoupledLoss, GradientsToBothImagesAreThoseOfFiniteDifferences) {
  for (const bool weighted : {false, true}) {
    LossCase c = weighted ? weighted_case(16, 13) : LossCase(16, 13);
    c.with_raw = true;
    const LossOutput got = device_loss(c);
    EXPECT_NEAR(got.metrics.loss, reference_loss(c, doubles(c.image), doubles(c.raw)), 1e-5);
    expect_gradient(c, false, got.d_image);
    expect_gradient(c, true, got.d_raw);
  }
}

TEST(DecoupledLoss, OfAnImageThatWasNotCorrectedIsThePlainLoss) {
  LossCase c(70, 50);
  const LossOutput plain = device_loss(c);
  c.raw = c.image;
  c.with_raw = true;
  const LossOutput got = device_loss(c);
  EXPECT_NEAR(got.metrics.loss, plain.metrics.loss, 1e-6);
  float largest = 0;
  for (const float g : plain.d_image) largest = std::max(largest, std::abs(g));
  for (size_t i = 0; i < 3 * c.n(); ++i) {
    ASSERT_NEAR(got.d_image[i] + got.d_raw[i], plain.d_image[i], 1e-3 * largest) << i;
  }
}

// E of TRAINING.md 3.2.
std::vector<double> reference_error(const LossCase& c) {
  const std::vector<double> image = doubles(c.with_raw ? c.raw : c.image);
  std::vector<double> error(c.n());
  double sum = 0;
  for (size_t i = 0; i < c.n(); ++i) {
    if (weight_of(c, i) == 0) continue;
    double contrast = 0;
    for (size_t channel = 0; channel < 3; ++channel) {
      contrast += ssim_at(c, image, image, channel, static_cast<int>(i % c.width),
                          static_cast<int>(i / c.width))
                      .contrast /
                  3;
    }
    error[i] = std::max(0.0, 1 - contrast);
    if (!c.mask.empty()) error[i] *= c.mask[i] >= 128 ? 1 : c.mask[i] / 255.0;
    sum += error[i];
  }
  for (size_t i = 0; i < c.n(); ++i) {
    error[i] /= sum / static_cast<double>(c.n()) + 1e-6;
    if (c.structure.empty()) continue;
    error[i] *= 1 + c.step.loss.densify_structure_weight * c.structure[i] / 63.0;
  }
  return error;
}

TEST(ErrorMap, IsTheLackOfContrastAndStructureOverItsMean) {
  for (const bool with_raw : {false, true}) {
    LossCase c = weighted_case(47, 39);
    if (!with_raw) c.weight.clear();
    c.with_raw = with_raw;
    c.with_error = true;
    const LossOutput got = device_loss(c);
    const std::vector<double> expected = reference_error(c);
    for (size_t i = 0; i < c.n(); ++i) ASSERT_NEAR(got.error[i], expected[i], 2e-4) << i;
  }
}

TEST(ErrorMap, HasTheMaskInItsMeanAndTheStructureNot) {
  LossCase c(50, 41);
  c.with_error = true;
  c.step.loss.mask_mode = kMaskIgnore;
  c.step.loss.mask_threshold = 0.5f;
  c.step.loss.densify_structure_weight = 0.7f;
  for (uint32_t i = 0; i < c.n(); ++i) {
    c.mask.push_back(static_cast<uint8_t>(random_at(7, i) < 0.2f ? 0 : 256 * random_at(8, i)));
    c.structure.push_back(static_cast<uint8_t>(252 * random_at(9, i)));
  }
  const LossOutput got = device_loss(c);
  const std::vector<double> expected = reference_error(c);
  for (size_t i = 0; i < c.n(); ++i) ASSERT_NEAR(got.error[i], expected[i], 1e-3) << i;
}

TEST(LossInputs, NothingIsWrittenForARefusedStep) {
  LossCase c = weighted_case(33, 29);
  c.with_raw = c.with_error = true;
  c.accepted = false;
  const LossOutput got = device_loss(c);
  EXPECT_EQ(got.metrics.loss, 0.0f);
  for (const float g : got.d_image) ASSERT_EQ(g, 7.0f);
  for (const float g : got.d_raw) ASSERT_EQ(g, 7.0f);
  for (const float e : got.error) ASSERT_EQ(e, 7.0f);
}

}  // namespace
}  // namespace millrace::test
