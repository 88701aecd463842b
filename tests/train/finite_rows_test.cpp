// Dropping rows that hold no numbers, and the end of a run that diverged.
#include "train/finite_rows.h"

#include <gtest/gtest.h>

#include <limits>

#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

GaussianCloud rows(uint64_t n) {
  GaussianCloud cloud;
  cloud.sh_degree = 1;
  for (uint64_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>(i);
    cloud.means.insert(cloud.means.end(), 3, value);
    cloud.log_scales.insert(cloud.log_scales.end(), 3, value);
    cloud.rotations.insert(cloud.rotations.end(), 4, value);
    cloud.opacities.push_back(value);
    cloud.sh0.insert(cloud.sh0.end(), 3, value);
    cloud.sh_rest.insert(cloud.sh_rest.end(), 9, value);
  }
  return cloud;
}

TEST(FiniteRows, AreAllKept) {
  GaussianCloud cloud = rows(5);
  EXPECT_EQ(drop_non_finite_rows(cloud), 0u);
  EXPECT_EQ(cloud.count(), 5u);
}

TEST(FiniteRows, LoseOnlyTheirBadNeighbours) {
  GaussianCloud cloud = rows(5);
  cloud.means[3] = std::numeric_limits<float>::quiet_NaN();
  cloud.sh_rest[9 * 4 + 8] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(drop_non_finite_rows(cloud), 2u);
  EXPECT_EQ(cloud.opacities, (std::vector<float>{0, 2, 3}));
  EXPECT_EQ(cloud.means, (std::vector<float>{0, 0, 0, 2, 2, 2, 3, 3, 3}));
  EXPECT_EQ(cloud.sh_rest.size(), 27u);
  EXPECT_EQ(cloud.rotations[4], 2.0f);
}

TEST(FreeRows, AreThoseOfZeroQuaternionAlone) {
  GaussianCloud cloud = rows(5);  // row 0 is all zeros
  cloud.rotations[4 * 3] = cloud.rotations[4 * 3 + 1] = cloud.rotations[4 * 3 + 2] = 0;
  EXPECT_EQ(drop_free_rows(cloud), 1u);
  EXPECT_EQ(cloud.opacities, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(drop_free_rows(cloud), 0u);
}

TEST(FiniteRows, OfADivergedRunEndItAsDiverged) {
  TrainOptions options = tiny_options(30);
  options.means_lr = 1e38;
  options.output = (scratch_folder() / "diverged").string();
  const std::atomic<bool> stop = false;
  const auto result = train(options, {}, stop);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::Diverged) << result.error().message;
}

}  // namespace
}  // namespace millrace::test
