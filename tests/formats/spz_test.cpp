// Tests of formats/spz.cpp.
#include "formats/spz.h"

#include <gtest/gtest.h>

#include "formats/broken_files.h"
#include "formats/quantize.h"
#include "formats/random_model.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

// The arrays of a version 3 file behind its header, as bytes.
ByteVector unpacked(const GaussianCloud& cloud, const SpzOptions& options = {}) {
  return inflate_at_most(encode_spz(cloud, options), Deflate::Gzip, 1 << 20, "test").or_raise();
}
uint8_t byte_at(const ByteVector& bytes, size_t i) { return bytes_at<uint8_t>(bytes, i); }

GaussianCloud one_gaussian() {
  GaussianCloud cloud;
  cloud.sh_degree = 1;
  cloud.means = {1, 2, -3};
  cloud.log_scales = {0, -10, 100};
  cloud.rotations = {1, 1, 0, 0};
  cloud.opacities = {0};
  cloud.sh0 = {0, 100, -1};
  cloud.sh_rest = {0.5f, 0, 0, 0, 0, 0, 0.25f, -1, 0};
  return cloud;
}

TEST(Spz, IsLaidOutToTheByte) {
  const ByteVector bytes = unpacked(one_gaussian());
  ASSERT_EQ(bytes.size(), 16u + 9 + 1 + 3 + 3 + 4 + 9);
  EXPECT_EQ(bytes_at<uint32_t>(bytes, 0), 0x5053474eu);
  EXPECT_EQ(bytes_at<uint32_t>(bytes, 4), 3u);
  EXPECT_EQ(bytes_at<uint32_t>(bytes, 8), 1u);
  EXPECT_EQ(byte_at(bytes, 12), 1);
  const uint32_t fraction_bits = byte_at(bytes, 13);
  ASSERT_GE(fraction_bits, 12u);
  const auto fixed = [&](size_t at) {
    const uint32_t word = static_cast<uint32_t>(byte_at(bytes, at)) << 8 |
                          static_cast<uint32_t>(byte_at(bytes, at + 1)) << 16 |
                          static_cast<uint32_t>(byte_at(bytes, at + 2)) << 24;
    return std::ldexp(static_cast<double>(static_cast<int32_t>(word) >> 8),
                      -static_cast<int>(fraction_bits));
  };
  EXPECT_EQ(fixed(16), 1);             // x right
  EXPECT_EQ(fixed(19), -2);            // y up
  EXPECT_EQ(fixed(22), 3);             // z back
  EXPECT_EQ(byte_at(bytes, 25), 128);  // alpha 0.5
  EXPECT_EQ(byte_at(bytes, 26), 128);
  EXPECT_EQ(byte_at(bytes, 27), 255);
  EXPECT_EQ(byte_at(bytes, 28), 89);  // 127.5 - 38.25
  EXPECT_EQ(byte_at(bytes, 29), 160);
  EXPECT_EQ(byte_at(bytes, 30), 0);
  EXPECT_EQ(byte_at(bytes, 31), 255);
  // (x, y, z, w) = (r, 0, 0, r): the first of two equals is left out; w is the last of the three.
  EXPECT_EQ(bytes_at<uint32_t>(bytes, 32), 511u);
  // Colour is the inner axis; y and z change their signs, x does not.
  const std::array<uint8_t, 9> sh = {64, 128, 128, 128, 128, 128, 160, 0, 128};
  for (size_t k = 0; k < 9; ++k) EXPECT_EQ(byte_at(bytes, 36 + k), sh[k]) << k;
}

TEST(Spz, RoundTripKeepsEveryDegreeInBothVersions) {
  for (const int version : {3, 4}) {
    for (int degree = 0; degree <= 3; ++degree) {
      const GaussianCloud cloud = random_model(400, degree);
      const ByteVector bytes = encode_spz(cloud, {.version = version});
      const Apart most = apart(cloud, decode_spz(bytes, "test").or_raise());
      EXPECT_LT(most.means, 1.001f / 8192);
      EXPECT_LE(most.log_scales, 0.5f / 16 + 1e-5f);
      EXPECT_LT(most.rotation_deg, 0.3f);
      EXPECT_LT(most.alpha, 0.51f / 255);
      EXPECT_LT(most.sh0, 0.5f / 38 + 1e-4f);
      EXPECT_LE(most.sh_rest, 0.5f / 128 + 1e-5f);
      EXPECT_EQ(bytes, encode_spz(cloud, {.version = version}));
    }
  }
}

TEST(Spz, FewerBitsMakeSmallerFilesAndCoarserColours) {
  const GaussianCloud cloud = random_model(2000);
  const ByteVector coarse = encode_spz(cloud, {.version = 3, .sh_bits = 4});
  EXPECT_LT(coarse.size(), 0.75 * static_cast<double>(encode_spz(cloud).size()));
  const float most = apart(cloud, decode_spz(coarse, "test").or_raise()).sh_rest;
  EXPECT_GT(most, 0.03f);
  EXPECT_LE(most, 8.5f / 128 + 1e-5f);
}

// Colour by the harmonics of degree 0 to 3 towards the unit vector (x, y, z): TRAINING.md 1.1.
double color_towards(const float* rest, double x, double y, double z) {
  const double basis[15] = {-0.48860251190291987 * y,
                            0.48860251190291987 * z,
                            -0.48860251190291987 * x,
                            1.0925484305920792 * x * y,
                            -1.0925484305920792 * y * z,
                            0.94617469575755997 * z * z - 0.31539156525251999,
                            -1.0925484305920792 * x * z,
                            0.54627421529603959 * (x * x - y * y),
                            0.59004358992664352 * y * (-3 * x * x + y * y),
                            2.8906114426405538 * x * y * z,
                            0.45704579946446572 * y * (1 - 5 * z * z),
                            0.3731763325901154 * z * (5 * z * z - 3),
                            0.45704579946446572 * x * (1 - 5 * z * z),
                            1.4453057213202769 * z * (x * x - y * y),
                            0.59004358992664352 * x * (-x * x + 3 * y * y)};
  double sum = 0;
  for (int k = 0; k < 15; ++k) sum += basis[k] * rest[3 * k];
  return sum;
}

TEST(Spz, HoldsTheModelTurnedHalfAboutX) {
  const GaussianCloud cloud = random_model(20);
  const ByteVector bytes = unpacked(cloud);
  const size_t rotations = 16 + 20 * 16, sh = rotations + 20 * 4;
  for (size_t i = 0; i < 20; ++i) {
    std::array<float, 45> stored;
    for (size_t k = 0; k < 45; ++k) {
      stored[k] = (static_cast<float>(byte_at(bytes, sh + 45 * i + k)) - 128) / 128;
    }
    for (const auto& d : {std::array{0.6, 0.48, 0.64}, std::array{-0.48, 0.6, -0.64}}) {
      EXPECT_NEAR(color_towards(stored.data(), d[0], -d[1], -d[2]),
                  color_towards(&cloud.sh_rest[45 * i], d[0], d[1], d[2]), 0.02);
    }
    // The turned quaternion is q_x q, of which (x, y, z, w) is stored up to its sign, times the
    // same turn from the right, which leaves the ellipsoid as it is.
    const auto word = bytes_at<uint32_t>(bytes, rotations + 4 * i);
    const float* q = &cloud.rotations[4 * i];
    const std::array<float, 4> turned = {q[1], -q[2], -q[3], q[0]};
    const SmallestThree expected = smallest_three(turned);
    EXPECT_EQ(word >> 30, expected.largest);
    for (uint32_t k = 0; k < 3; ++k) {
      const uint32_t part = word >> (20 - 10 * k);
      const float size = from_unorm(part, 9) / 1.41421356f;
      EXPECT_NEAR(part & 512 ? -size : size, expected.others[k], 0.001f);
    }
  }
}

TEST(Spz, VersionTwoAndDegreeFourAreRead) {
  // One Gaussian: its rotation in three bytes, 24 coefficients of which 15 are kept.
  ByteVector bytes;
  append_bytes(bytes, 0x5053474eu);
  append_bytes(bytes, 2u);
  append_bytes(bytes, 1u);
  for (const int byte : {4, 12, 0, 0}) append_bytes(bytes, static_cast<uint8_t>(byte));
  for (const int byte : {0, 0x10, 0, 0, 0xf0, 0xff, 0, 0, 0})
    append_bytes(bytes, static_cast<uint8_t>(byte));
  for (const int byte : {255, 128, 128, 128, 160, 160, 160})
    append_bytes(bytes, static_cast<uint8_t>(byte));
  for (const int byte : {255, 127, 128}) append_bytes(bytes, static_cast<uint8_t>(byte));
  for (int k = 0; k < 72; ++k) append_bytes(bytes, static_cast<uint8_t>(k < 45 ? 192 : 255));
  const GaussianCloud cloud = decode_spz(gzip(bytes), "test").or_raise();
  ASSERT_EQ(cloud.count(), 1u);
  EXPECT_EQ(cloud.sh_degree, 3);
  EXPECT_EQ(cloud.means, (std::vector<float>{1, 1, 0}));
  EXPECT_NEAR(cloud.rotations[1], 1, 1e-4);
  EXPECT_NEAR(cloud.rotations[0], 0, 1e-2);
  for (const float value : cloud.sh_rest) EXPECT_EQ(std::abs(value), 0.5f);
}

TEST(Spz, FarGaussiansTakeFewerFractionBitsInsteadOfBeingCut) {
  GaussianCloud cloud = random_model(50, 0);
  cloud.means[3] = 5e5f;
  const GaussianCloud read = decode_spz(encode_spz(cloud), "test").or_raise();
  EXPECT_NEAR(read.means[3], 5e5f, 0.1f);
}

TEST(Spz, ThatIsBrokenIsSeen) {
  const TemporaryFolder folder;
  for (const int version : {3, 4}) {
    ASSERT_TRUE(write_spz(folder / "a.spz", random_model(200, 1), {.version = version}).ok());
    expect_broken_files_are_seen(folder / "a.spz");
  }
}

TEST(Spz, ACountThatTheFileCannotHoldIsRefusedBeforeAnythingIsAllocated) {
  ByteVector bytes = unpacked(one_gaussian());
  bytes[8] = bytes[9] = bytes[10] = bytes[11] = std::byte{0xff};
  const auto read = decode_spz(gzip(bytes), "big.spz");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("big.spz: byte 8"), std::string::npos)
      << read.error().message;
}

}  // namespace
}  // namespace millrace
