// Tests of formats/compressed_ply.cpp.
#include "formats/compressed_ply.h"

#include <gtest/gtest.h>

#include "formats/broken_files.h"
#include "formats/quantize.h"
#include "formats/random_model.h"
#include "formats/space_order.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

std::string text_of(const std::filesystem::path& path) { return read_text_file(path).or_raise(); }

TEST(CompressedPly, PacksItsWordsToTheBit) {
  const TemporaryFolder folder;
  GaussianCloud cloud;
  cloud.sh_degree = 1;
  cloud.means = {0, 0, 0, 2, 2, 2, 1, 1, 1};
  cloud.log_scales = {-1, -1, -1, -30, 30, 0, 0, 0, 0};
  cloud.rotations = {1, 0, 0, 0, 0, 0, -3, 0, 1, 1, 0, 0};
  cloud.opacities = {0, 100, -100};
  cloud.sh0 = {0, 0, 0, 1, 1, 1, 0, 0, 1};
  cloud.sh_rest.assign(27, 0.0f);
  cloud.sh_rest[0] = -4, cloud.sh_rest[3] = 4, cloud.sh_rest[1] = 1;
  ASSERT_TRUE(write_compressed_ply(folder / "a.ply", cloud).ok());
  const std::string text = text_of(folder / "a.ply");
  const size_t body = text.find("end_header\n") + 11;
  ASSERT_EQ(text.size(), body + 18 * 4 + 3 * 16 + 3 * 9);
  const auto bytes = std::as_bytes(std::span(text)).subspan(body);
  EXPECT_EQ(bytes_at<float>(bytes, 0), 0);     // min_x
  EXPECT_EQ(bytes_at<float>(bytes, 12), 2);    // max_x
  EXPECT_EQ(bytes_at<float>(bytes, 24), -20);  // min_scale_x, clamped
  EXPECT_EQ(bytes_at<float>(bytes, 40), 20);   // max_scale_y
  EXPECT_EQ(bytes_at<float>(bytes, 48), 0.5f);
  EXPECT_FLOAT_EQ(bytes_at<float>(bytes, 60), 0.5f + kShC0);
  // Morton order: the third row lies between the others.
  constexpr std::array<size_t, 3> kPlace = {0, 2, 1};
  const auto word = [&](size_t row, size_t k) {
    return bytes_at<uint32_t>(bytes, 72 + 16 * kPlace[row] + 4 * k);
  };
  EXPECT_EQ(word(0, 0), 0u);
  EXPECT_EQ(word(1, 0), ~0u);
  EXPECT_EQ(word(2, 0), 1024u << 21 | 512u << 11 | 1024u);
  EXPECT_EQ(word(0, 1), 0u << 30 | 512u << 20 | 512u << 10 | 512u);
  EXPECT_EQ(word(1, 1), 2u << 30 | 512u << 20 | 512u << 10 | 512u);  // -y largest
  EXPECT_EQ(word(2, 1), 0u << 30 | 1023u << 20 | 512u << 10 | 512u);
  EXPECT_EQ(word(0, 3), 128u);  // opacity 0.5
  EXPECT_EQ(word(1, 3), ~0u);
  EXPECT_EQ(word(2, 3), 0x0000ff00u);
  // Channel-major: red's three, then green's.
  const auto sh = [&](size_t i) { return bytes_at<uint8_t>(bytes, 72 + 48 + i); };
  EXPECT_EQ(sh(0), 0);
  EXPECT_EQ(sh(1), 255);
  EXPECT_EQ(sh(3), 160);
}

TEST(CompressedPly, RoundTripKeepsEveryDegreeWithinItsSteps) {
  const TemporaryFolder folder;
  for (int degree = 0; degree <= 3; ++degree) {
    const GaussianCloud cloud = random_model(700, degree);
    ASSERT_TRUE(write_compressed_ply(folder / "a.compressed.ply", cloud).ok());
    ASSERT_TRUE(is_compressed_ply(folder / "a.compressed.ply"));
    const Apart most = apart(take_rows(cloud, morton_order(cloud)),
                             read_model(folder / "a.compressed.ply").or_raise(), true);
    EXPECT_LT(most.means, 0.2f);  // of the chunk that holds the far ones
    EXPECT_LT(most.log_scales, 0.006f);
    EXPECT_LT(most.rotation_deg, 0.4f);
    EXPECT_LT(most.alpha, 0.51f / 255);
    EXPECT_LT(most.sh0, 0.06f);
    EXPECT_LE(most.sh_rest, 4.0f / 256 + 1e-5f);
  }
}

TEST(CompressedPly, OldChunksWithoutColoursAreRead) {
  const TemporaryFolder folder;
  std::string file =
      "ply\nformat binary_little_endian 1.0\nelement chunk 1\n"
      "property float min_x\nproperty float min_y\nproperty float min_z\nproperty float max_x\n"
      "property float max_y\nproperty float max_z\nproperty float min_scale_x\n"
      "property float min_scale_y\nproperty float min_scale_z\nproperty float max_scale_x\n"
      "property float max_scale_y\nproperty float max_scale_z\nelement vertex 1\n"
      "property uint packed_position\nproperty uint packed_rotation\nproperty uint packed_scale\n"
      "property uint packed_color\nend_header\n";
  const auto append = [&](auto value) {
    file.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  for (int i = 0; i < 12; ++i) append(static_cast<float>(i));
  for (const uint32_t word : {~0u, 512u << 20 | 512u << 10 | 512u, 0u, 0xff000080u}) append(word);
  ASSERT_TRUE(write_file_atomically(folder / "old.ply", file).ok());
  const GaussianCloud cloud = read_model(folder / "old.ply").or_raise();
  ASSERT_EQ(cloud.count(), 1u);
  EXPECT_EQ(cloud.sh_degree, 0);
  EXPECT_FLOAT_EQ(cloud.means[2], 5);
  EXPECT_FLOAT_EQ(cloud.log_scales[0], 6);
  EXPECT_FLOAT_EQ(cloud.sh0[0], 0.5f / kShC0);
  EXPECT_NEAR(cloud.opacities[0], 0.0079f, 1e-3f);
}

TEST(CompressedPly, ThatIsBrokenIsSeen) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_compressed_ply(folder / "a.compressed.ply", random_model(300, 1)).ok());
  expect_broken_files_are_seen(folder / "a.compressed.ply");
}

TEST(CompressedPly, WithTooFewChunksIsRefused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_compressed_ply(folder / "a.ply", random_model(300, 0)).ok());
  std::string text = text_of(folder / "a.ply");
  const size_t at = text.find("element chunk 2");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 15, "element chunk 1");
  ASSERT_TRUE(write_file_atomically(folder / "a.ply", text).ok());
  const auto read = read_model(folder / "a.ply");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("1 chunks"), std::string::npos) << read.error().message;
}

}  // namespace
}  // namespace millrace
