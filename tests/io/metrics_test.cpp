// Tests of io/metrics.cpp against values computed by hand and by a naive second implementation.
#include "io/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "random_image.h"

namespace millrace {
namespace {

// photo as a function of the render's pixel (r, g, b) at index i.
ImageF mapped(const ImageF& image,
              const std::function<std::array<float, 3>(const float*, size_t)>& map) {
  ImageF out = image;
  for (size_t i = 0; i < image.pixels.size() / 3; ++i) {
    const auto value = map(&image.pixels[3 * i], i);
    for (size_t c = 0; c < 3; ++c) out.pixels[3 * i + c] = value[c];
  }
  return out;
}

ImageF constant(uint32_t width, uint32_t height, float value) {
  return {width, height, std::vector<float>(3ull * width * height, value)};
}

bool odd_cell(size_t i, size_t width) { return (i % width / 32 + i / width / 32) % 2 == 1; }

// The definition, window by window: weights w, means, then central moments.
double naive_ssim(const ImageF& a, const ImageF& b) {
  double weights[11][11], total = 0;
  for (int y = 0; y < 11; ++y) {
    for (int x = 0; x < 11; ++x) {
      weights[y][x] = std::exp(-((x - 5) * (x - 5) + (y - 5) * (y - 5)) / (2 * 1.5 * 1.5));
      total += weights[y][x];
    }
  }
  double sum = 0;
  size_t n = 0;
  for (size_t c = 0; c < 3; ++c) {
    for (size_t top = 0; top + 11 <= a.height; ++top) {
      for (size_t left = 0; left + 11 <= a.width; ++left) {
        const auto over_window = [&](const std::function<double(double, double)>& f) {
          double result = 0;
          for (size_t y = 0; y < 11; ++y) {
            for (size_t x = 0; x < 11; ++x) {
              const size_t i = ((top + y) * a.width + left + x) * 3 + c;
              result += weights[y][x] / total *
                        f(static_cast<double>(a.pixels[i]), static_cast<double>(b.pixels[i]));
            }
          }
          return result;
        };
        const double ma = over_window([](double va, double) { return va; });
        const double mb = over_window([](double, double vb) { return vb; });
        const double saa = over_window([&](double va, double) { return (va - ma) * (va - ma); });
        const double sbb = over_window([&](double, double vb) { return (vb - mb) * (vb - mb); });
        const double sab = over_window([&](double va, double vb) { return (va - ma) * (vb - mb); });
        sum += (2 * ma * mb + 1e-4) * (2 * sab + 9e-4) /
               ((ma * ma + mb * mb + 1e-4) * (saa + sbb + 9e-4));
        ++n;
      }
    }
  }
  return sum / static_cast<double>(n);
}

TEST(Metrics, PsnrOfAConstantOffsetIsMinusTwentyLogOfIt) {
  const ImageScore score = score_image(constant(40, 20, 0.5f), constant(40, 20, 0.6f));
  EXPECT_NEAR(score.psnr, 20.0, 1e-5);
}

TEST(Metrics, EqualImagesScoreOneHundredDecibelsAndSsimOne) {
  const ImageF image = wave_image(70, 50);
  const ImageScore score = score_image(image, image);
  EXPECT_DOUBLE_EQ(score.psnr, 100);
  EXPECT_DOUBLE_EQ(score.psnr_cc, 100);
  EXPECT_DOUBLE_EQ(score.psnr_gain, 100);
  EXPECT_NEAR(score.ssim, 1, 1e-12);
  EXPECT_NEAR(score.ssim_cc, 1, 1e-12);
}

TEST(Metrics, RendersAreClampedAndNanCountsAsBlack) {
  ImageF render = constant(16, 16, 3.0f), photo = constant(16, 16, 1.0f);
  EXPECT_DOUBLE_EQ(score_image(render, photo).psnr, 100);
  render = constant(16, 16, -2.0f);
  EXPECT_NEAR(score_image(render, photo).psnr, 0, 1e-12);
  render.pixels.assign(render.pixels.size(), std::nanf(""));
  EXPECT_NEAR(score_image(render, photo).psnr, 0, 1e-12);
}

TEST(Metrics, SsimOfTwoConstantsIsItsLuminanceTerm) {
  const double expected = (2 * 0.25 * 0.75 + 1e-4) / (0.25 * 0.25 + 0.75 * 0.75 + 1e-4);
  EXPECT_NEAR(score_image(constant(16, 12, 0.25f), constant(16, 12, 0.75f)).ssim, expected, 1e-10);
}

TEST(Metrics, SsimEqualsTheDefinitionWindowByWindow) {
  const ImageF a = wave_image(31, 23), noise = noise_image(31, 23, 1);
  ImageF b = a;
  for (size_t i = 0; i < b.pixels.size(); ++i) b.pixels[i] += 0.1f * (noise.pixels[i] - 0.5f);
  const double expected = naive_ssim(a, b);
  EXPECT_GT(expected, 0.5);
  EXPECT_LT(expected, 0.99);
  EXPECT_NEAR(score_image(a, b).ssim, expected, 1e-10);
  EXPECT_NEAR(score_image(a, noise).ssim, naive_ssim(a, noise), 1e-10);
}

TEST(Metrics, SsimOfAnImageOfOneWindowIsThatWindow) {
  const ImageF a = noise_image(11, 11, 2), b = noise_image(11, 11, 3);
  EXPECT_NEAR(score_image(a, b).ssim, naive_ssim(a, b), 1e-10);
  EXPECT_TRUE(std::isnan(score_image(constant(10, 30, 0.5f), constant(10, 30, 0.5f)).ssim));
}

TEST(Metrics, ColourCorrectionUndoesAnAffineDistortion) {
  const ImageF render = wave_image(160, 130);
  const ImageF photo = mapped(render, [](const float* p, size_t) {
    return std::array<float, 3>{0.7f * p[0] + 0.1f * p[1] + 0.05f,
                                0.6f * p[1] + 0.08f * p[2] + 0.1f,
                                0.1f * p[0] + 0.5f * p[2] + 0.2f};
  });
  const ImageScore score = score_image(render, photo);
  EXPECT_LT(score.psnr, 25);
  EXPECT_LT(score.psnr_gain, 30);
  EXPECT_GT(score.psnr_cc, 60);
  EXPECT_GT(score.ssim_cc, 0.9999);
  EXPECT_LT(score.ssim, score.ssim_cc);
}

TEST(Metrics, ColourCorrectionGainsNothingOnUnrelatedNoise) {
  const ImageScore score = score_image(noise_image(128, 128, 4), noise_image(128, 128, 5));
  // The best constant leaves the variance of uniform noise, 1/12: 10.79 dB.
  EXPECT_NEAR(score.psnr_cc, 10.79, 0.05);
  EXPECT_NEAR(score.psnr, 7.78, 0.1);  // twice that variance
}

TEST(Metrics, ColourMapsAreScoredOnTheOtherCellsOnly) {
  // Within either colour of cells one affine map explains everything; across colours it does not.
  const ImageF render = wave_image(128, 128);
  const ImageF photo = mapped(render, [](const float* p, size_t i) {
    const bool odd = odd_cell(i, 128);
    return std::array<float, 3>{odd ? 1 - p[0] : p[0], odd ? 1 - p[1] : p[1],
                                odd ? 1 - p[2] : p[2]};
  });
  double mse = 0;  // each half scored with the other's map: |1 - 2 p|^2 everywhere
  for (const float p : render.pixels) mse += (1 - 2.0 * p) * (1 - 2.0 * p);
  mse /= static_cast<double>(render.pixels.size());
  EXPECT_NEAR(score_image(render, photo).psnr_cc, -10 * std::log10(mse), 0.01);
}

TEST(Metrics, ClippedPixelsAreLeftOutOfTheFitButScored) {
  const ImageF render = wave_image(128, 64);
  const auto clipped = [](size_t i) { return i % 7 == 0; };
  const ImageF photo = mapped(render, [&](const float* p, size_t i) {
    if (clipped(i)) return std::array<float, 3>{1, 0.5f, 0.5f};
    return std::array<float, 3>{0.5f * p[0] + 0.2f, 0.5f * p[1] + 0.2f, 0.5f * p[2] + 0.2f};
  });
  std::array<double, 2> sums = {}, counts = {};
  for (size_t i = 0; i < 128 * 64; ++i) {
    const size_t half = odd_cell(i, 128) ? 1 : 0;
    counts[half] += 3;
    if (!clipped(i)) continue;
    for (size_t c = 0; c < 3; ++c) {
      const double error = 0.5 * render.pixels[3 * i + c] + 0.2 - (c == 0 ? 1.0 : 0.5);
      sums[half] += error * error;
    }
  }
  const double mse = (sums[0] / counts[0] + sums[1] / counts[1]) / 2;
  EXPECT_NEAR(score_image(render, photo).psnr_cc, -10 * std::log10(mse), 1e-4);
}

TEST(Metrics, ValuesOnTheClippingLimitsAreClippedAndTheirNeighboursAreNot) {
  // All pixels but those near the limits are black in the photo, hence unusable: the fit sees
  // either enough colourful pixels (exact map) or none (identity).
  const ImageF render = wave_image(128, 128);
  for (const int limit : {4, 5, 250, 251}) {
    const auto value = static_cast<float>(limit) / 255.0f;
    const ImageF photo = mapped(render, [&](const float* p, size_t) {
      return std::array<float, 3>{0.5f * p[0] + 0.2f, 0.5f * p[1] + 0.2f, value};
    });
    const bool usable = limit == 5 || limit == 250;
    EXPECT_EQ(score_image(render, photo).psnr_cc > 60, usable) << limit;
  }
}

TEST(Metrics, SingularFitsFallBackToTheIdentity) {
  const ImageF gray = mapped(wave_image(64, 64), [](const float* p, size_t) {
    return std::array<float, 3>{p[0], p[0], p[0]};
  });
  const ImageF photo = wave_image(64, 64, 0.4f);
  const ImageScore score = score_image(gray, photo);
  EXPECT_NEAR(score.psnr_cc, score.psnr, 1e-9);
  EXPECT_NEAR(score.ssim_cc, score.ssim, 1e-12);
}

TEST(Metrics, BothHalvesCountEquallyWhateverTheirSize) {
  // Three cells in a row, even odd even; only the odd one is wrong, by 0.2.
  ImageF render = constant(96, 32, 0.5f), photo = render;
  for (size_t i = 0; i < 96 * 32; ++i) {
    for (size_t c = 0; c < 3; ++c) photo.pixels[3 * i + c] += odd_cell(i, 96) ? 0.2f : 0.0f;
  }
  const ImageScore score = score_image(render, photo);
  EXPECT_NEAR(score.psnr_cc, -10 * std::log10(0.04 / 2), 1e-4);
  EXPECT_NEAR(score.psnr, -10 * std::log10(0.04 / 3), 1e-4);
}

TEST(Metrics, ImagesWithinOneCellScoreRaw) {
  const ImageF render = wave_image(20, 20), photo = wave_image(20, 20, 0.3f);
  const ImageScore score = score_image(render, photo);
  EXPECT_NEAR(score.psnr_cc, score.psnr, 1e-9);
}

TEST(Metrics, OneGainIsFittedByLeastSquaresAndClamped) {
  const ImageF photo = wave_image(64, 40);
  const ImageF render = mapped(photo, [](const float* p, size_t) {
    return std::array<float, 3>{0.5f * p[0], 0.5f * p[1], 0.5f * p[2]};
  });
  EXPECT_GT(score_image(render, photo).psnr_gain, 99);
  // Values 0.25 and 1 against 0.5 and 1: gain (0.125 + 1) / (0.0625 + 1) = 18/17, clamped to 1
  // above.
  ImageF two = constant(16, 16, 0.25f), target = constant(16, 16, 0.5f);
  for (size_t i = 0; i < two.pixels.size() / 2; ++i) two.pixels[i] = target.pixels[i] = 1;
  const double error = 0.5 - 0.25 * 18 / 17;
  EXPECT_NEAR(score_image(two, target).psnr_gain, -10 * std::log10(error * error / 2), 1e-6);
  EXPECT_NEAR(score_image(constant(16, 16, 0), target).psnr_gain,
              score_image(constant(16, 16, 0), target).psnr, 1e-12);
}

TEST(Metrics, DifferentSizesAreAProgrammingError) {
  EXPECT_THROW(score_image(constant(16, 16, 0), constant(16, 17, 0)), Exception);
  EXPECT_THROW(score_image(ImageF{}, ImageF{}), Exception);
}

TEST(Metrics, TheMeanIsTakenPerMeasure) {
  const std::vector<FileScore> scores = {{"a", {10, 0.5, 20, 0.6, 30}},
                                         {"b", {20, 0.7, 40, 1, 50}}};
  const ImageScore mean = mean_score(scores);
  EXPECT_DOUBLE_EQ(mean.psnr, 15);
  EXPECT_DOUBLE_EQ(mean.ssim, 0.6);
  EXPECT_DOUBLE_EQ(mean.psnr_cc, 30);
  EXPECT_DOUBLE_EQ(mean.ssim_cc, 0.8);
  EXPECT_DOUBLE_EQ(mean.psnr_gain, 40);
  EXPECT_EQ(mean_score({}).psnr, 0);
}

// Garbage outside the mask changes nothing but SSIM near its edge; inside it counts.
TEST(Metrics, CountWhatTheMaskKeepsAlone) {
  const uint32_t width = 96, height = 64;
  const ImageF photo = wave_image(width, height);
  const ImageF render = mapped(photo, [](const float* p, size_t) {
    return std::array<float, 3>{0.8f * p[0] + 0.1f, 0.8f * p[1], 0.7f * p[2] + 0.2f};
  });
  std::vector<float> left(size_t{width} * height);
  for (size_t i = 0; i < left.size(); ++i) left[i] = i % width < 48 ? 1.0f : 0.0f;
  const ImageF spoilt = mapped(render, [&](const float* p, size_t i) {
    return i % width < 48 ? std::array<float, 3>{p[0], p[1], p[2]} : std::array<float, 3>{1, 0, 1};
  });
  const ImageScore clean = score_image(render, photo, left),
                   kept = score_image(spoilt, photo, left);
  EXPECT_NEAR(kept.psnr, clean.psnr, 1e-9);
  EXPECT_NEAR(kept.psnr_cc, clean.psnr_cc, 1e-9);
  EXPECT_NEAR(kept.psnr_gain, clean.psnr_gain, 1e-9);
  EXPECT_LT(score_image(spoilt, photo).psnr, clean.psnr - 3);
  EXPECT_LT(score_image(spoilt, photo).psnr_cc, clean.psnr_cc - 3);
  // The mean over the kept half, by hand.
  double sum = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) {
      const double d = render.pixels[3 * i + c] - photo.pixels[3 * i + c];
      sum += left[i] * d * d;
    }
  }
  EXPECT_NEAR(clean.psnr, -10 * std::log10(sum / (3.0 * 48 * height)), 1e-6);
  // Weights of 1 are none; with all of 0 there is nothing to score.
  const std::vector<float> all(left.size(), 1.0f), nothing(left.size(), 0.0f);
  EXPECT_NEAR(score_image(render, photo, all).ssim, score_image(render, photo).ssim, 1e-12);
  EXPECT_NEAR(score_image(render, photo, all).psnr_cc, score_image(render, photo).psnr_cc, 1e-12);
  EXPECT_TRUE(std::isnan(score_image(render, photo, nothing).psnr));
  EXPECT_TRUE(std::isnan(score_image(render, photo, nothing).ssim));
}

}  // namespace
}  // namespace millrace
