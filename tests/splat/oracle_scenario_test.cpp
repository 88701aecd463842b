// Checks of the oracle itself, against numbers that can be worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "splat/oracle.h"
#include "splat/scene.h"

namespace millrace::test {
namespace {

constexpr std::array<double, 3> kBlack = {0, 0, 0};

Camera plain_camera(uint32_t width, uint32_t height) {
  Camera camera;
  camera.width = width;
  camera.height = height;
  camera.fx = camera.fy = 50;
  camera.cx = width / 2.0;
  camera.cy = height / 2.0;
  return camera;
}

size_t at(const OracleFrame& frame, int x, int y) { return size_t(y) * frame.width + x; }

TEST(Oracle, GivesTheOpacityAtTheCentrePixelOfOneGaussian) {
  const Camera camera = plain_camera(31, 21);
  GaussianCloud cloud;
  append_gaussian(cloud, camera, 15.5, 10.5, 4, 2, 0.6, {0.2, 0.5, 0.9});
  const OracleFrame frame = oracle_render(cloud, camera, 3, {1, 1, 1}, 0.01);
  const size_t centre = at(frame, 15, 10);
  EXPECT_NEAR(frame.alpha[centre], 0.6, 1e-7);
  EXPECT_NEAR(frame.depth[centre], 0.6 * 4, 1e-6);
  EXPECT_NEAR(frame.image[centre], 0.6 * 0.2 + 0.4, 1e-6);
  EXPECT_NEAR(frame.image[2 * 31 * 21 + centre], 0.6 * 0.9 + 0.4, 1e-6);
}

TEST(Oracle, FallsOffAsAGaussianWidenedByTheDilation) {
  const Camera camera = plain_camera(31, 21);
  GaussianCloud cloud;
  append_gaussian(cloud, camera, 15.5, 10.5, 4, 2, 0.6, {0.5, 0.5, 0.5});
  const OracleFrame frame = oracle_render(cloud, camera, 3, kBlack, 0.01);
  EXPECT_NEAR(frame.alpha[at(frame, 18, 10)], 0.6 * std::exp(-9 / (2 * 4.3)), 1e-7);
  EXPECT_NEAR(frame.alpha[at(frame, 15, 14)], 0.6 * std::exp(-16 / (2 * 4.3)), 1e-7);
  EXPECT_EQ(frame.alpha[at(frame, 15 + 8, 10)], 0) << "below 1/255";
}

TEST(Oracle, MultipliesTransmittanceOverLayersFrontToBack) {
  const Camera camera = plain_camera(31, 21);
  GaussianCloud cloud;
  append_gaussian(cloud, camera, 15.5, 10.5, 6, 2, 0.5, {1, 0, 0});
  append_gaussian(cloud, camera, 15.5, 10.5, 4, 2, 0.75, {0, 1, 0});
  const OracleFrame frame = oracle_render(cloud, camera, 3, {0, 0, 1}, 0.01);
  const size_t centre = at(frame, 15, 10), plane = 31 * 21;
  EXPECT_NEAR(frame.alpha[centre], 1 - 0.5 * 0.25, 1e-7);
  EXPECT_NEAR(frame.image[centre], 0.25 * 0.5, 1e-6);
  EXPECT_NEAR(frame.image[plane + centre], 0.75, 1e-6);
  EXPECT_NEAR(frame.image[2 * plane + centre], 0.125, 1e-6);
}

TEST(Oracle, StopsAPixelOnceItIsOpaque) {
  const Camera camera = plain_camera(11, 11);
  GaussianCloud cloud;
  append_gaussian(cloud, camera, 5.5, 5.5, 2, 2, 0.99, {0, 0, 0});
  append_gaussian(cloud, camera, 5.5, 5.5, 3, 2, 0.995, {0, 0, 0});
  append_gaussian(cloud, camera, 5.5, 5.5, 4, 2, 0.9, {4, 4, 4});
  const OracleFrame frame = oracle_render(cloud, camera, 3, kBlack, 0.01);
  EXPECT_EQ(frame.image[at(frame, 5, 5)], 0);
  EXPECT_NEAR(frame.alpha[at(frame, 5, 5)], 1 - 0.01 * 0.005, 1e-7);
}

TEST(Oracle, LeavesOutCulledRows) {
  const Camera camera = plain_camera(31, 21);
  GaussianCloud cloud;
  append_culled_rows(cloud, camera, 0.5);
  ASSERT_EQ(cloud.count(), 4u);
  const OracleFrame frame = oracle_render(cloud, camera, 3, {0.1, 0.2, 0.3}, 0.5);
  for (double alpha : frame.alpha) EXPECT_EQ(alpha, 0);
  EXPECT_EQ(frame.image[0], 0.1);
}

TEST(Oracle, RotatesTheSplatWithItsQuaternion) {
  const Camera camera = plain_camera(31, 31);
  GaussianCloud cloud;
  append_gaussian(cloud, camera, 15.5, 15.5, 4, 1, 0.9, {1, 1, 1});
  cloud.log_scales[0] += std::log(4.0f);
  // 45 degrees about the view axis, from x towards y.
  const float half = std::numbers::pi_v<float> / 8;
  cloud.rotations = {3 * std::cos(half), 0, 0, 3 * std::sin(half)};
  const OracleFrame frame = oracle_render(cloud, camera, 0, kBlack, 0.01);
  EXPECT_NEAR(frame.alpha[at(frame, 18, 18)], 0.9 * std::exp(-18 / (2 * 16.3)), 1e-6);
  EXPECT_NEAR(frame.alpha[at(frame, 16, 14)], 0.9 * std::exp(-2 / (2 * 1.3)), 1e-6);
}

TEST(Oracle, HasAnOrthonormalShBasis) {
  // The midpoint rule in z and angle is exact enough for polynomials of degree 6.
  constexpr int kSteps = 400;
  double gram[16][16] = {};
  for (int i = 0; i < kSteps; ++i) {
    const double z = -1 + (i + 0.5) * 2 / kSteps, r = std::sqrt(1 - z * z);
    for (int j = 0; j < 32; ++j) {
      const double angle = (j + 0.5) * 2 * std::numbers::pi / 32;
      const auto basis = oracle_sh_basis(r * std::cos(angle), r * std::sin(angle), z);
      for (int a = 0; a < 16; ++a) {
        for (int b = 0; b < 16; ++b) {
          gram[a][b] += basis[a] * basis[b] * 4 * std::numbers::pi / (kSteps * 32);
        }
      }
    }
  }
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      EXPECT_NEAR(gram[a][b], a == b ? 1 : 0, 2e-4) << a << " " << b;
    }
  }
}

TEST(Oracle, HasTheSignsOfTheFieldsShConvention) {
  const auto x = oracle_sh_basis(1, 0, 0), y = oracle_sh_basis(0, 1, 0),
             z = oracle_sh_basis(0, 0, 1);
  EXPECT_LT(y[1], 0);
  EXPECT_GT(z[2], 0);
  EXPECT_LT(x[3], 0);
  EXPECT_GT(z[6], 0);
  EXPECT_GT(x[8], 0);
  EXPECT_GT(z[12], 0);
  EXPECT_LT(x[15], 0);
}

OracleFrame frame_of(const std::vector<uint8_t>& pixels, int width, int height) {
  OracleFrame frame;
  frame.width = width;
  frame.height = height;
  for (uint8_t value : pixels) frame.image.push_back(value / 255.0);
  return frame;
}

TEST(Oracle, HasNoLossBetweenIdenticalImages) {
  for (const auto& [width, height] : {std::pair{24, 17}, {9, 30}, {1, 1}}) {
    const auto target = test_target(width, height, 5);
    const OracleFrame frame = frame_of(target, width, height);
    EXPECT_NEAR(oracle_loss(frame, target, 1), 0, 1e-12);
    EXPECT_NEAR(oracle_loss(frame, target, 0), 0, 1e-12);
  }
}

TEST(Oracle, MeasuresConstantImagesInClosedForm) {
  constexpr int kWidth = 20, kHeight = 16;
  std::vector<uint8_t> dark(3 * kWidth * kHeight, 51), bright(3 * kWidth * kHeight, 153);
  const OracleFrame frame = frame_of(dark, kWidth, kHeight);
  EXPECT_NEAR(oracle_loss(frame, bright, 0), 0.4, 1e-12);
  const double ssim = (2 * 0.2 * 0.6 + 1e-4) / (0.04 + 0.36 + 1e-4);
  EXPECT_NEAR(oracle_loss(frame, bright, 1), 1 - ssim, 1e-9);
  EXPECT_NEAR(oracle_loss(frame, bright, 0.25), 0.75 * 0.4 + 0.25 * (1 - ssim), 1e-9);
}

TEST(Oracle, CountsOnlyPixelsAwayFromTheBorderInL1) {
  constexpr int kWidth = 12, kHeight = 11;
  std::vector<uint8_t> target(3 * kWidth * kHeight, 0);
  OracleFrame frame = frame_of(target, kWidth, kHeight);
  frame.image[4 * kWidth + 5] = 1;  // one row above the only two pixels that count
  EXPECT_EQ(oracle_loss(frame, target, 0), 0);
  frame.image[5 * kWidth + 6] = 1;
  EXPECT_NEAR(oracle_loss(frame, target, 0), 1.0 / 6, 1e-12);
}

TEST(Oracle, MarksDifferencesOverAJumpOrAKink) {
  OracleCloud cloud;
  cloud.opacities = {0.3};
  const auto functionals = [](const OracleCloud& c) {
    const double x = c.opacities[0] - 0.3;
    return std::vector<double>{std::sin(3 * x + 1), x > 3e-7 ? 1e-3 : 0.0, std::abs(x),
                               std::abs(x - 3e-7)};
  };
  const auto result = central_differences(cloud, Group::Opacities, 0, 1e-6, functionals);
  EXPECT_TRUE(result[0].smooth(1e-6));
  EXPECT_NEAR(result[0].value(), 3 * std::cos(1.0), 1e-6);
  EXPECT_FALSE(result[1].smooth(1e-3));
  EXPECT_FALSE(result[2].smooth(1e-3));
  EXPECT_FALSE(result[3].smooth(1e-3));
  EXPECT_EQ(cloud.opacities[0], 0.3);
}

TEST(TestScene, OverlapsOverSeveralTilesWithoutCoveringAll) {
  for (uint64_t seed : {1, 2, 3}) {
    const TestScene scene = test_scene(80, seed);
    const OracleFrame frame =
        oracle_render(scene.cloud, scene.camera, 3, scene.background, scene.near_plane);
    double most = 0, mean = 0;
    for (double alpha : frame.alpha) {
      most = std::max(most, alpha);
      mean += alpha / static_cast<double>(frame.alpha.size());
    }
    EXPECT_GT(most, 0.98);
    EXPECT_GT(mean, 0.6);
    EXPECT_LT(mean, 0.995);
  }
}

}  // namespace
}  // namespace millrace::test
