// Tests of formats/space_order.cpp.
#include "formats/space_order.h"

#include <gtest/gtest.h>

#include <numeric>

#include "formats/random_model.h"

namespace millrace {
namespace {

bool is_permutation_of_rows(std::vector<uint32_t> rows, size_t n) {
  std::sort(rows.begin(), rows.end());
  std::vector<uint32_t> all(n);
  std::iota(all.begin(), all.end(), 0u);
  return rows == all;
}

// Mean over runs of 64 rows of the logarithm of their box's diagonal.
double boxes(const GaussianCloud& cloud, const std::vector<uint32_t>& rows) {
  double sum = 0;
  size_t n_runs = 0;
  for (size_t begin = 0; begin < rows.size(); begin += 64) {
    double d2 = 0;
    for (size_t k = 0; k < 3; ++k) {
      float low = INFINITY, high = -INFINITY;
      for (size_t i = begin; i < std::min(rows.size(), begin + 64); ++i) {
        low = std::min(low, cloud.means[3 * rows[i] + k]);
        high = std::max(high, cloud.means[3 * rows[i] + k]);
      }
      d2 += (high - low) * (high - low);
    }
    sum += 0.5 * std::log(d2);
    ++n_runs;
  }
  return sum / static_cast<double>(n_runs);
}

TEST(SpaceOrder, HoldsEveryRowOnce) {
  for (const uint32_t n : {0u, 1u, 63u, 64u, 65u, 1000u}) {
    const GaussianCloud cloud = random_model(n, 0);
    EXPECT_TRUE(is_permutation_of_rows(morton_order(cloud), n)) << n;
  }
}

TEST(SpaceOrder, RunsFillSmallBoxes) {
  const GaussianCloud cloud = random_model(2000, 0);
  std::vector<uint32_t> given(cloud.count());
  std::iota(given.begin(), given.end(), 0u);
  EXPECT_LT(boxes(cloud, morton_order(cloud)), boxes(cloud, given) - 0.5);
}

TEST(SpaceOrder, IsThatOfTheFileWhereAllMeansAreEqual) {
  GaussianCloud cloud = random_model(3000, 0);
  std::fill(cloud.means.begin(), cloud.means.end(), 1.0f);
  EXPECT_TRUE(is_permutation_of_rows(morton_order(cloud), 3000));
}

TEST(SpaceOrder, TakenRowsAreThoseOfTheOrder) {
  const GaussianCloud cloud = random_model(5, 1);
  const GaussianCloud taken = take_rows(cloud, {3, 1});
  EXPECT_EQ(taken.count(), 2u);
  EXPECT_EQ(taken.means[0], cloud.means[9]);
  EXPECT_EQ(taken.sh_rest[9 + 4], cloud.sh_rest[9 + 4]);
}

}  // namespace
}  // namespace millrace
