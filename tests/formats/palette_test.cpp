// Tests of formats/palette.cpp.
#include "formats/palette.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"

namespace millrace {
namespace {

std::vector<float> normals(uint32_t n) {
  std::vector<float> out;
  for (uint32_t i = 0; i < n; ++i) {
    const auto words = philox(5, 0, RandomPurpose::Synthetic, i);
    out.push_back(normal_pair(words[0], words[1])[0]);
  }
  return out;
}

double mean_square_error(const std::vector<float>& rows, size_t n_axes, const Palette& palette) {
  double sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double d = rows[i] - palette.centroids[palette.labels[i / n_axes] * n_axes + i % n_axes];
    sum += d * d;
  }
  return sum / static_cast<double>(rows.size());
}

TEST(Codebook, RisesAndHoldsFewValuesExactly) {
  const std::vector<float> few = {3, -1, 3, 7, -1, 3};
  const Codebook codebook = make_codebook(few);
  for (size_t k = 1; k < codebook.size(); ++k) EXPECT_LE(codebook[k - 1], codebook[k]);
  for (const float value : few) {
    EXPECT_NEAR(codebook[nearest_entry(codebook, value)], value, 1e-5f);
  }
}

TEST(Codebook, IsFinerThanEvenStepsWhereValuesAreMany) {
  std::vector<float> values = normals(20000);
  values.push_back(40);  // one far away
  const Codebook codebook = make_codebook(values);
  double sum = 0;
  for (const float value : values) {
    const double d = value - codebook[nearest_entry(codebook, value)];
    sum += d * d;
  }
  const double even = 44.0 / 256;
  EXPECT_LT(sum / static_cast<double>(values.size()), 0.02 * even * even / 12);
}

TEST(Palette, WithRoomForEveryRowIsExact) {
  const std::vector<float> rows = normals(3 * 500);
  const Palette palette = make_palette(rows, 3, 1024);
  EXPECT_LT(mean_square_error(rows, 3, palette), 1e-12);
}

TEST(Palette, OfSixteenForNormalVectorsIsNearTheBestThereIs) {
  const std::vector<float> rows = normals(2 * 4000);
  const Palette palette = make_palette(rows, 2, 16);
  ASSERT_EQ(palette.centroids.size(), 32u);
  // Sixteen cells of a plane: 0.13 or so an axis when found by many starts of k-means.
  EXPECT_LT(mean_square_error(rows, 2, palette), 0.16);
  const Palette again = make_palette(rows, 2, 16);
  EXPECT_EQ(palette.centroids, again.centroids);
  EXPECT_EQ(palette.labels, again.labels);
}

TEST(Palette, OfEqualRowsIsOneVector) {
  const std::vector<float> rows(300, 2.0f);
  const Palette palette = make_palette(rows, 3, 64);
  EXPECT_EQ(palette.centroids, (std::vector<float>{2, 2, 2}));
}

}  // namespace
}  // namespace millrace
