// Removing what lies outside a box from a file.
#include "train/apply_crop.h"

#include <gtest/gtest.h>

#include "io/ply.h"
#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

// Row i lies at (i, 0, 0), and all its other numbers are i too.
GaussianCloud line_of(uint64_t n) {
  GaussianCloud cloud;
  cloud.sh_degree = 1;
  cloud.mip_filter = true;
  for (uint64_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>(i);
    cloud.means.insert(cloud.means.end(), {value, 0, 0});
    cloud.log_scales.insert(cloud.log_scales.end(), 3, value);
    cloud.rotations.insert(cloud.rotations.end(), 4, value);
    cloud.opacities.push_back(value);
    cloud.sh0.insert(cloud.sh0.end(), 3, value);
    cloud.sh_rest.insert(cloud.sh_rest.end(), 9, value);
  }
  return cloud;
}

class ApplyCrop : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.model = (scratch_folder() / "crop_in.ply").string();
    options_.output = (scratch_folder() / "crop_out.ply").string();
    std::filesystem::remove(options_.output);
    write_gaussian_ply(options_.model, line_of(10)).or_raise();
  }
  ApplyCropOptions options_;
};

TEST_F(ApplyCrop, KeepsTheRowsInsideAsTheyAre) {
  options_.crop_box = "2.5,-1,-1,6,1,1";
  const ApplyCropResult result = apply_crop(options_).or_raise();
  EXPECT_EQ(result.n_kept, 4u);
  EXPECT_EQ(result.n_removed, 6u);
  const GaussianCloud kept = read_gaussian_ply(options_.output).or_raise();
  EXPECT_EQ(kept.opacities, (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(kept.means, (std::vector<float>{3, 0, 0, 4, 0, 0, 5, 0, 0, 6, 0, 0}));
  EXPECT_EQ(kept.sh_rest[9], 4.0f);
  EXPECT_EQ(kept.rotations[15], 6.0f);
  EXPECT_TRUE(kept.mip_filter);
}

TEST_F(ApplyCrop, RefusesAnEarlierFileAndAnEmptyModel) {
  options_.crop_box = "20,0,0,21,1,1";
  const Result<ApplyCropResult> empty = apply_crop(options_);
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().message.find("none of the 10 Gaussians"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(options_.output));
  options_.crop_box = "0,-1,-1,6,1,1";
  ASSERT_TRUE(apply_crop(options_).ok());
  const Result<ApplyCropResult> again = apply_crop(options_);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::Usage);
  options_.overwrite = true;
  EXPECT_TRUE(apply_crop(options_).ok());
}

}  // namespace
}  // namespace millrace::test
