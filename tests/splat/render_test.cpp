// Rendering against the oracle, which knows no tiles: what a tile or extent test wrongly left out
// would show as a missing contribution.
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>

#include "simulated/substitute.h"
#include "splat/device_render.h"
#include "splat/oracle.h"
#include "splat/scene.h"

namespace millrace::test {
namespace {

struct Tolerance {
  double value = 2e-4;  // colour and alpha; times 8, the largest depth, for depth
  double margin =
      1e-4;             // a pixel whose decisive alpha or T lies nearer to its threshold is excused
  double share = 0.01;  // of pixels that may be excused, beside one
};

OracleStep step_of(const TestScene& scene, int degree = 3) {
  OracleStep step;
  step.active_sh_degree = degree;
  step.background = scene.background;
  step.near_plane = scene.near_plane;
  return step;
}

class Render : public testing::Test {
 protected:
  void SetUp() override { device_ = open_device(simulated::test_device("cpu")).or_raise(); }

  // An excused pixel may gain or lose one contribution of alpha 1/255 and what it hides, or all
  // that lies behind T = 1e-4; two per pixel are allowed for.
  void expect_like_oracle(const TestScene& scene, const OracleStep& step,
                          const Tolerance& tolerance = {}) {
    const OracleFrame expected = oracle_render(scene.cloud, scene.camera, step.active_sh_degree,
                                               step.background, step.near_plane, {step.mip_filter});
    const DeviceFrame frame = device_render(*device_, scene.cloud, scene.camera, step);
    const size_t pixels = expected.alpha.size();
    ASSERT_EQ(frame.image.size(), 3 * pixels);
    ASSERT_EQ(frame.alpha.size(), pixels);
    ASSERT_EQ(frame.depth.size(), pixels);
    size_t n_excused = 0, n_wrong = 0;
    double worst = 0, worst_excused = 0;
    size_t worst_pixel = 0;
    for (size_t i = 0; i < pixels; ++i) {
      double error = std::abs(frame.alpha[i] - expected.alpha[i]);
      error = std::max(error, std::abs(frame.depth[i] - expected.depth[i]) / 8);
      for (size_t channel = 0; channel < 3; ++channel) {
        const size_t j = channel * pixels + i;
        error = std::max(error, std::abs(frame.image[j] - expected.image[j]));
      }
      if (!(error <= 1e3)) error = 1e3;  // also what is not a number
      if (expected.margin[i] < tolerance.margin) {
        ++n_excused;
        worst_excused = std::max(worst_excused, error);
        continue;
      }
      n_wrong += error > tolerance.value;
      if (error > worst) worst = error, worst_pixel = i;
    }
    EXPECT_LE(worst, tolerance.value)
        << n_wrong << " of " << pixels << " pixels; the worst at x "
        << worst_pixel % scene.camera.width << ", y " << worst_pixel / scene.camera.width;
    EXPECT_LE(worst_excused, 2 * 4.0 / 255);
    EXPECT_LE(static_cast<double>(n_excused), 1 + tolerance.share * static_cast<double>(pixels));
  }

  std::unique_ptr<Device> device_;
};

TEST_F(Render, AgreesWithTheMipFilter) {
  for (uint64_t seed : {2, 3, 4}) {
    SCOPED_TRACE(seed);
    const TestScene scene = test_scene(80, seed);
    OracleStep step = step_of(scene);
    step.mip_filter = true;
    expect_like_oracle(scene, step);
    const DeviceFrame with = device_render(*device_, scene.cloud, scene.camera, step);
    step.mip_filter = false;
    EXPECT_NE(with.image, device_render(*device_, scene.cloud, scene.camera, step).image);
  }
}

TEST_F(Render, AgreesOnOverlappingGaussiansOfSeveralSeeds) {
  for (uint64_t seed : {2, 3, 4, 5, 6, 7}) {
    SCOPED_TRACE(seed);
    const TestScene scene = test_scene(80, seed);
    expect_like_oracle(scene, step_of(scene));
  }
}

TEST_F(Render, AgreesAtSizesThatTilesDoNotDivide) {
  for (const auto& [width, height] :
       {std::pair{1, 1}, {1, 50}, {37, 1}, {16, 16}, {17, 15}, {33, 47}, {100, 31}}) {
    SCOPED_TRACE(std::to_string(width) + "x" + std::to_string(height));
    TestScene scene = test_scene(60, 11, width, height);
    expect_like_oracle(scene, step_of(scene));
  }
}

TEST_F(Render, AgreesAtEveryActiveShDegree) {
  const TestScene scene = test_scene(80, 3);
  for (int degree : {0, 1, 2, 3}) {
    SCOPED_TRACE(degree);
    expect_like_oracle(scene, step_of(scene, degree));
  }
}

TEST_F(Render, AgreesWhenTheModelStoresFewerShBands) {
  for (int degree : {0, 1, 2}) {
    SCOPED_TRACE(degree);
    const TestScene scene = test_scene(60, 9, 48, 40, degree);
    expect_like_oracle(scene, step_of(scene, degree));
  }
}

TEST_F(Render, RefusesAnEmptyCloud) {
  const TestScene scene = test_scene(1, 1);
  EXPECT_THROW(device_render(*device_, GaussianCloud{}, scene.camera, step_of(scene)), Exception);
}

TEST_F(Render, ShowsOnlyBackgroundWhenAllAreCulled) {
  TestScene scene = test_scene(1, 1);
  scene.cloud = GaussianCloud{};
  scene.near_plane = 0.5;
  append_culled_rows(scene.cloud, scene.camera, scene.near_plane);
  const DeviceFrame frame = device_render(*device_, scene.cloud, scene.camera, step_of(scene));
  for (float alpha : frame.alpha) ASSERT_EQ(alpha, 0);
  expect_like_oracle(scene, step_of(scene));
}

TEST_F(Render, LeavesOutRowsThatAreNotFinite) {
  TestScene scene = test_scene(80, 3);
  const float bad[] = {std::nanf(""), INFINITY, -INFINITY};
  TestScene kept = scene;
  for (int i = 0; i < 3; ++i) {
    GaussianCloud& c = scene.cloud;
    for (int victim = 0; victim < 5; ++victim) {
      append_gaussian(c, scene.camera, 24, 20, 2.0, 5, 0.9, {1, 0, 1});
      const size_t row = c.count() - 1;
      if (victim == 0) c.means[3 * row + i] = bad[i];
      if (victim == 1) c.rotations[4 * row + i] = bad[i];
      if (victim == 2) c.sh0[3 * row + i] = bad[i];
      if (victim == 3) c.log_scales[3 * row + i] = std::nanf("");
      if (victim == 4) c.opacities[row] = bad[i];
    }
  }
  const DeviceFrame with = device_render(*device_, scene.cloud, scene.camera, step_of(scene));
  const DeviceFrame without = device_render(*device_, kept.cloud, kept.camera, step_of(kept));
  EXPECT_EQ(with.image, without.image);
}

TEST_F(Render, CoversTheScreenWithOneHugeGaussian) {
  TestScene scene = test_scene(30, 6);
  append_gaussian(scene.cloud, scene.camera, 20, 30, 1, 400, 0.8, {0.9, 0.1, 0.3});
  append_gaussian(scene.cloud, scene.camera, 20, 30, 9, 1e5, 0.9, {0.2, 0.1, 0.9});
  expect_like_oracle(scene, step_of(scene));
}

TEST_F(Render, AgreesWithThousandsOfInstances) {
  const TestScene scene = test_scene(5000, 8, 96, 80);
  // Some 2,000 Gaussians meet each pixel before it is opaque: more pairs lie near a threshold.
  expect_like_oracle(scene, step_of(scene), {.value = 2e-4, .margin = 1e-4, .share = 0.05});
}

TEST_F(Render, AgreesOnNeedles) {
  TestScene scene = test_scene(80, 7);
  for (size_t row = 0; row < scene.cloud.count(); ++row) {
    scene.cloud.log_scales[3 * row] += 2.0f;
    scene.cloud.log_scales[3 * row + 1] -= 6.0f;
    scene.cloud.log_scales[3 * row + 2] -= 6.0f;
  }
  // Blending works on a factor of the conic, in which a needle is a circle: no wider tolerance.
  expect_like_oracle(scene, step_of(scene));
}

TEST_F(Render, AgreesOnGaussiansFarOffScreen) {
  TestScene scene = test_scene(20, 9);
  for (double angle = 0; angle < 6.28; angle += 0.3) {
    for (double distance : {60.0, 300.0, 3000.0}) {
      append_gaussian(scene.cloud, scene.camera, 24 + distance * std::cos(angle),
                      20 + distance * std::sin(angle), 3 + 0.01 * angle, 0.4 * distance, 0.5,
                      {0.5 + 0.4 * std::cos(angle), 0.5, 0.5});
    }
  }
  expect_like_oracle(scene, step_of(scene), {.value = 2e-4, .margin = 1e-3, .share = 0.05});
}

TEST_F(Render, StopsBehindOpaqueLayers) {
  TestScene scene = test_scene(60, 4);
  for (double z : {1.0, 1.1, 1.2, 1.3}) {
    append_gaussian(scene.cloud, scene.camera, 24, 20, z, 12, 0.9999, {z - 0.9, 0.5, 1});
  }
  expect_like_oracle(scene, step_of(scene), {.value = 2e-4, .margin = 1e-3, .share = 0.02});
}

TEST(RenderThreads, GiveEqualBits) {
  const TestScene scene = test_scene(2000, 5, 150, 90);
  // oneTBB starts no more threads than there are processors unless told to.
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 3);
  std::vector<DeviceFrame> frames;
  for (const char* id : {"cpu:1", "cpu:2", "cpu:3"}) {
    const auto device = open_device(simulated::test_device(id)).or_raise();
    frames.push_back(device_render(*device, scene.cloud, scene.camera, step_of(scene)));
  }
  for (size_t i = 1; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].image, frames[0].image);
    EXPECT_EQ(frames[i].alpha, frames[0].alpha);
    EXPECT_EQ(frames[i].depth, frames[0].depth);
  }
}

}  // namespace
}  // namespace millrace::test
