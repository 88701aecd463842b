// Tests of formats/splat_file.cpp.
#include "formats/splat_file.h"

#include <gtest/gtest.h>

#include "formats/broken_files.h"
#include "formats/quantize.h"
#include "formats/random_model.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

TEST(SplatFile, IsLaidOutToTheByteWithTheMostVisibleFirst) {
  const TemporaryFolder folder;
  GaussianCloud cloud;
  cloud.sh_degree = 0;
  cloud.means = {1, 2, 3, 4, 5, 6};
  cloud.log_scales = {-2, -2, -2, 0, 1, -1};
  cloud.rotations = {1, 0, 0, 0, 0, -2, 0, 0};
  cloud.opacities = {0, 100};
  cloud.sh0 = {0, 0, 0, 100, -100, 0.5f / kShC0 / 2};
  ASSERT_TRUE(write_splat(folder / "a.splat", cloud).ok());
  const auto bytes = read_file(folder / "a.splat").or_raise();
  ASSERT_EQ(bytes.size(), 64u);
  EXPECT_EQ(bytes_at<float>(bytes, 0), 4);  // the second row is larger
  EXPECT_EQ(bytes_at<float>(bytes, 8), 6);
  EXPECT_FLOAT_EQ(bytes_at<float>(bytes, 12), 1);
  EXPECT_FLOAT_EQ(bytes_at<float>(bytes, 16), std::exp(1.0f));
  const std::array<uint8_t, 8> tail = {255, 0, 191, 255, 128, 0, 128, 128};
  for (size_t k = 0; k < 8; ++k) EXPECT_EQ(bytes_at<uint8_t>(bytes, 24 + k), tail[k]) << k;
  // -q is the same rotation; a byte reaches -1 and not 1.
  EXPECT_EQ(bytes_at<uint8_t>(bytes, 32 + 28), 0);
}

TEST(SplatFile, RoundTripKeepsPositionsAndRoundsTheRest) {
  const TemporaryFolder folder;
  const GaussianCloud cloud = random_model(300, 0);
  ASSERT_TRUE(write_splat(folder / "a.splat", cloud).ok());
  const Apart most = apart(cloud, read_splat(folder / "a.splat").or_raise());
  EXPECT_EQ(most.means, 0);
  EXPECT_LT(most.log_scales, 1e-5f);
  EXPECT_LT(most.rotation_deg, 1.2f);
  EXPECT_LT(most.alpha, 0.51f / 255);
  EXPECT_LT(most.sh0, 2.1f);  // what is outside 0..1 is cut
}

TEST(SplatFile, ThatIsBrokenIsSeen) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_splat(folder / "a.splat", random_model(20)).ok());
  // A cut between two Gaussians leaves a sound file.
  expect_broken_files_are_seen(folder / "a.splat", /*every_cut_is_seen=*/false);
  ASSERT_TRUE(write_file_atomically(folder / "b.splat", std::string(33, 'x')).ok());
  const auto read = read_splat(folder / "b.splat");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("byte 33"), std::string::npos) << read.error().message;
}

}  // namespace
}  // namespace millrace
