// Gradients of rendering, of the loss and of the whole step, against central differences of the
// oracle.
//
// Deliberately detached, and so absent from these scenes:
// - a colour clamped at 0 or 4 passes the gradient that points inside (RecoversFromTheColourClamp);
// - rows whose gradient is not finite keep their parameters;
// - the mip filter's compensation of the opacity is taken for a constant (OfTheMipFilterAgrees);
// - gradients are clamped to +-1e4, far above any here.
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "simulated/substitute.h"
#include "splat/device_render.h"
#include "splat/oracle.h"
#include "splat/scene.h"

namespace millrace::test {
namespace {

// Seeds whose scenes have no alpha or transmittance within 1e-4 (relative) of a threshold, so that
// float32 and float64 decide alike about every pair.
constexpr std::array<uint64_t, 3> kSeeds = {2, 3, 4};
constexpr uint32_t kGaussians = 80;
constexpr size_t kEntries = 75;  // per group and scene
constexpr double kStep = 3e-6;

enum Functional { kLinear, kLoss, kStepLoss, kOpacity };

struct Scene : TestScene {
  std::vector<uint8_t> target;
  std::vector<float> d_image;  // weights of the linear functional
  std::vector<float> d_alpha;  // [H,W] and of the opacity's
  OracleStep step;
};

Scene gradient_scene(uint64_t seed) {
  Scene scene{test_scene(kGaussians, seed), {}, {}, {}, {}};
  append_culled_rows(scene.cloud, scene.camera, scene.near_plane);
  scene.target = test_target(scene.camera.width, scene.camera.height, seed);
  for (uint32_t i = 0; i < scene.target.size(); ++i) {
    scene.d_image.push_back(static_cast<float>(2 * test_uniform(seed, i, 99) - 1));
  }
  for (uint32_t i = 0; i < scene.target.size() / 3; ++i) {
    scene.d_alpha.push_back(static_cast<float>(4 * test_uniform(seed, i, 98) - 2));
  }
  scene.step.background = scene.background;
  scene.step.near_plane = scene.near_plane;
  scene.step.ssim_weight = 0.2;
  scene.step.opacity_reg = 0.01;
  scene.step.scale_reg = 0.01;
  scene.step.erank_reg = 0.01;
  scene.step.sh_rest_reg = 0.01;
  scene.step.dc_reg = 1e-4;
  for (size_t i = 0; i < scene.cloud.sh0.size(); i += 7) scene.cloud.sh0[i] += 2.5f;
  return scene;
}

struct Measured {
  size_t scene;
  Group group;
  size_t entry;
  std::vector<Difference> by_functional;
};

std::vector<double> evaluate(const Scene& scene, const OracleCloud& cloud) {
  const OracleFrame frame = oracle_render(cloud, scene.camera, scene.step.active_sh_degree,
                                          scene.step.background, scene.step.near_plane);
  double linear = 0;
  for (size_t i = 0; i < frame.image.size(); ++i) linear += scene.d_image[i] * frame.image[i];
  double opacity = linear;
  for (size_t i = 0; i < frame.alpha.size(); ++i) opacity += scene.d_alpha[i] * frame.alpha[i];
  const double loss = oracle_loss(frame, scene.target, scene.step.ssim_weight);
  return {linear, loss, loss + oracle_regularisers(cloud, scene.step), opacity};
}

// Differences by kEntries entries of each group of each scene; rendering serves all functionals.
const std::vector<Measured>& measured() {
  static const std::vector<Measured> all = [] {
    std::vector<Measured> out;
    for (size_t s = 0; s < kSeeds.size(); ++s) {
      const Scene scene = gradient_scene(kSeeds[s]);
      OracleCloud cloud = scene.cloud;
      const Functionals functionals = [&](const OracleCloud& c) { return evaluate(scene, c); };
      for (Group group : kGroups) {
        const size_t size = group_of(cloud, group).size();
        for (size_t i = 0; i < kEntries; ++i) {
          // Strata, so that entries differ and every part of the group is met.
          const double u = test_uniform(kSeeds[s], static_cast<uint32_t>(i), 200 + int(group));
          const auto entry = static_cast<size_t>((static_cast<double>(i) + u) * size / kEntries);
          out.push_back(
              {s, group, entry, central_differences(cloud, group, entry, kStep, functionals)});
        }
      }
    }
    return out;
  }();
  return all;
}

// |a - b| <= 1e-3 max(|a|, |b|, 1e-2 largest of the group) for at least 200 entries of each group.
void expect_gradients(Functional functional, std::vector<GaussianCloud> analytic) {
  for (Group group : kGroups) {
    size_t n_compared = 0, n_skipped = 0;
    for (size_t s = 0; s < kSeeds.size(); ++s) {
      // A jump inside a step fakes a huge slope: only differences that repeat name the largest.
      double largest = 0;
      for (const Measured& m : measured()) {
        if (m.scene != s || m.group != group) continue;
        const Difference& d = m.by_functional[functional];
        if (d.smooth(1e-3 * std::abs(d.value()))) largest = std::max(largest, std::abs(d.value()));
      }
      ASSERT_GT(largest, 0) << to_string(group);
      for (const Measured& m : measured()) {
        if (m.scene != s || m.group != group) continue;
        const Difference& d = m.by_functional[functional];
        if (!d.smooth(3e-4 * std::max(std::abs(d.value()), 1e-2 * largest))) {
          ++n_skipped;
          continue;
        }
        ++n_compared;
        const double a = group_of(analytic[s], group)[m.entry], b = d.value();
        const double scale = std::max({std::abs(a), std::abs(b), 1e-2 * largest});
        EXPECT_LE(std::abs(a - b), 1e-3 * scale)
            << to_string(group) << " entry " << m.entry << " of seed " << kSeeds[s] << ": kernels "
            << a << ", differences " << b << ", largest " << largest;
      }
    }
    EXPECT_GE(n_compared, 200u) << to_string(group);
    EXPECT_LE(n_skipped, n_compared / 50) << to_string(group);
  }
}

class Gradient : public testing::Test {
 protected:
  void SetUp() override { device_ = open_device(simulated::test_device("cpu")).or_raise(); }
  std::unique_ptr<Device> device_;
};

TEST_F(Gradient, ScenesKeepAwayFromThresholds) {
  for (uint64_t seed : kSeeds) {
    const Scene scene = gradient_scene(seed);
    const OracleFrame frame =
        oracle_render(scene.cloud, scene.camera, 3, scene.background, scene.near_plane);
    EXPECT_GT(*std::min_element(frame.margin.begin(), frame.margin.end()), 1e-4);
  }
}

TEST_F(Gradient, OfALinearFunctionOfTheImageAgrees) {
  std::vector<GaussianCloud> analytic;
  for (uint64_t seed : kSeeds) {
    const Scene s = gradient_scene(seed);
    analytic.push_back(device_gradients(*device_, s.cloud, s.camera, s.step, s.d_image).d_cloud);
  }
  expect_gradients(kLinear, analytic);
}

TEST_F(Gradient, OfTheFramesOpacityAgrees) {
  std::vector<GaussianCloud> analytic;
  for (uint64_t seed : kSeeds) {
    const Scene s = gradient_scene(seed);
    analytic.push_back(
        device_gradients(*device_, s.cloud, s.camera, s.step, s.d_image, s.d_alpha).d_cloud);
  }
  expect_gradients(kOpacity, analytic);
}

TEST_F(Gradient, OfTheLossAgrees) {
  std::vector<GaussianCloud> analytic;
  for (uint64_t seed : kSeeds) {
    const Scene s = gradient_scene(seed);
    analytic.push_back(
        device_loss_gradients(*device_, s.cloud, s.camera, s.step, s.target).d_cloud);
  }
  expect_gradients(kLoss, analytic);
}

// Adam's first moment after one step from zero is 0.1 of the gradient that Adam saw.
TEST_F(Gradient, OfTheWholeStepAgrees) {
  std::vector<GaussianCloud> analytic;
  for (uint64_t seed : kSeeds) {
    const Scene s = gradient_scene(seed);
    GaussianCloud moment =
        device_train(*device_, s.cloud, s.camera, s.step, s.target, 1, Epilogue::FusedAdam)
            .first_moment;
    for (Group group : kGroups) {
      for (float& value : group_of(moment, group)) value *= 10;
    }
    analytic.push_back(moment);
  }
  expect_gradients(kStepLoss, analytic);
}

TEST_F(Gradient, LossValueAgrees) {
  for (uint64_t seed : kSeeds) {
    const Scene s = gradient_scene(seed);
    OracleStep step = s.step;
    step.opacity_reg = step.scale_reg = step.erank_reg = step.sh_rest_reg = step.dc_reg = 0;
    EXPECT_NEAR(device_loss_gradients(*device_, s.cloud, s.camera, s.step, s.target).loss,
                oracle_step_loss(s.cloud, s.camera, s.target, step), 1e-5);
  }
}

TEST_F(Gradient, IsZeroForInactiveShBandsAndCulledRows) {
  Scene s = gradient_scene(kSeeds[0]);
  s.step.active_sh_degree = 1;
  const auto result = device_gradients(*device_, s.cloud, s.camera, s.step, s.d_image);
  size_t n_active = 0;
  for (size_t i = 0; i < s.cloud.sh_rest.size(); ++i) {
    if (i / 3 % 15 >= 3) {
      EXPECT_EQ(result.d_cloud.sh_rest[i], 0) << i;
    }
    n_active += result.d_cloud.sh_rest[i] != 0;
  }
  EXPECT_GT(n_active, 9 * kGaussians / 2);
  for (size_t row = kGaussians; row < s.cloud.count(); ++row) {
    EXPECT_EQ(result.d_cloud.opacities[row], 0);
    EXPECT_EQ(result.weights[row], 0);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(result.d_cloud.means[3 * row + i], 0);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(result.d_cloud.rotations[4 * row + i], 0);
  }
}

// Each opacity is compensated for the dilation, and the compensation counts as a constant.
TEST_F(Gradient, OfTheMipFilterAgrees) {
  Scene scene = gradient_scene(kSeeds[0]);
  scene.step.mip_filter = true;
  OracleCloud cloud = scene.cloud;
  const std::vector<double> compensation =
      oracle_compensation(cloud, scene.camera, scene.near_plane);
  EXPECT_LT(*std::min_element(compensation.begin(), compensation.end()), 0.9);
  const Functionals linear = [&](const OracleCloud& c) {
    const OracleFrame frame = oracle_render(c, scene.camera, 3, scene.background, scene.near_plane,
                                            {true, &compensation});
    double sum = 0;
    for (size_t i = 0; i < frame.image.size(); ++i) sum += scene.d_image[i] * frame.image[i];
    return std::vector<double>{sum};
  };
  GaussianCloud analytic =
      device_gradients(*device_, scene.cloud, scene.camera, scene.step, scene.d_image).d_cloud;
  for (Group group : {Group::Means, Group::LogScales, Group::Opacities, Group::Sh0}) {
    const size_t size = group_of(cloud, group).size();
    std::vector<std::pair<size_t, Difference>> differences;
    double largest = 0;
    for (size_t i = 0; i < 30; ++i) {
      const size_t entry = i * size / 30;
      const Difference d = central_differences(cloud, group, entry, kStep, linear)[0];
      if (!d.smooth(1e-3 * std::abs(d.value()))) continue;
      differences.emplace_back(entry, d);
      largest = std::max(largest, std::abs(d.value()));
    }
    EXPECT_GE(differences.size(), 25u) << to_string(group);
    for (const auto& [entry, d] : differences) {
      const double a = group_of(analytic, group)[entry], b = d.value();
      EXPECT_LE(std::abs(a - b), 1e-3 * std::max({std::abs(a), std::abs(b), 1e-2 * largest}))
          << to_string(group) << " entry " << entry << ": kernels " << a << ", differences " << b;
    }
  }
}

// The sum of a row's weights is the image's slope by its colour.
TEST_F(Gradient, SumsBlendWeightsOverPixelsOfTheImageOnly) {
  for (const auto& [width, height] : {std::pair{48, 40}, {41, 37}}) {
    TestScene scene = test_scene(60, 3, width, height);
    OracleStep step;
    step.background = scene.background;
    std::vector<float> d_image(3 * size_t(width) * height, 0.0f);
    std::fill(d_image.begin(), d_image.begin() + size_t(width) * height, 1.0f);
    const auto result = device_gradients(*device_, scene.cloud, scene.camera, step, d_image);
    double worst = 0;
    for (size_t row = 0; row < scene.cloud.count(); ++row) {
      const double expected = result.d_cloud.sh0[3 * row] / 0.28209479177387814;
      const double error = std::abs(result.weights[row] - expected);
      worst = std::max(worst, error / std::max(1.0, expected));
    }
    EXPECT_LE(worst, 1e-5) << width << "x" << height;
  }
}

// Below 0 only a gradient that raises the colour passes, above 4 only one that lowers it.
TEST_F(Gradient, RecoversFromTheColourClamp) {
  const Camera camera = test_camera(32, 32);
  GaussianCloud cloud;
  append_gaussian(cloud, camera, 16, 16, 4, 3, 0.7, {-0.5, 5.0, 0.5});
  const OracleStep step;
  for (float sign : {1.0f, -1.0f}) {
    const auto result =
        device_gradients(*device_, cloud, camera, step, std::vector<float>(3 * 32 * 32, sign));
    EXPECT_EQ(result.d_cloud.sh0[0] != 0, sign < 0);
    EXPECT_EQ(result.d_cloud.sh0[1] != 0, sign > 0);
    EXPECT_NE(result.d_cloud.sh0[2], 0);
  }
}

TEST_F(Gradient, EpiloguesGiveEqualBits) {
  const Scene s = gradient_scene(kSeeds[1]);
  const auto fused =
      device_train(*device_, s.cloud, s.camera, s.step, s.target, 3, Epilogue::FusedAdam);
  const auto buffered =
      device_train(*device_, s.cloud, s.camera, s.step, s.target, 3, Epilogue::GradientBuffer);
  EXPECT_TRUE(fused == buffered);
  EXPECT_NE(fused.cloud.means, s.cloud.means);
  EXPECT_NE(fused.cloud.sh_rest, s.cloud.sh_rest);
}

TEST_F(Gradient, RowsOutsideTheCropBoxCrawlOrStay) {
  Scene s = gradient_scene(kSeeds[1]);
  // Up to the middle row along x.
  std::vector<float> xs;
  for (size_t i = 0; i < s.cloud.means.size(); i += 3) xs.push_back(s.cloud.means[i]);
  std::nth_element(xs.begin(), xs.begin() + kGaussians / 2, xs.end());
  const float middle = xs[kGaussians / 2];
  s.step.crop.enabled = 1;
  for (int axis = 0; axis < 3; ++axis) {
    s.step.crop.world_to_box[5 * axis] = 1;
    s.step.crop.min[axis] = -100;
    s.step.crop.max[axis] = axis == 0 ? middle : 100;
  }
  for (const float rate : {0.0f, 0.1f}) {
    s.step.crop.rate_scale = rate;
    for (const Epilogue epilogue : {Epilogue::FusedAdam, Epilogue::GradientBuffer}) {
      const auto slow = device_train(*device_, s.cloud, s.camera, s.step, s.target, 1, epilogue);
      OracleStep plain = s.step;
      plain.crop = {};
      const auto full = device_train(*device_, s.cloud, s.camera, plain, s.target, 1, epilogue);
      size_t n_outside = 0;
      for (size_t i = 0; i < s.cloud.opacities.size(); ++i) {
        const bool outside = s.cloud.means[3 * i] > middle;
        n_outside += outside;
        const float whole = full.cloud.opacities[i] - s.cloud.opacities[i];
        const float moved = slow.cloud.opacities[i] - s.cloud.opacities[i];
        EXPECT_NEAR(moved, outside ? rate * whole : whole, 1e-6) << i;
        EXPECT_EQ(slow.first_moment.opacities[i] == 0, outside && rate == 0) << i;
      }
      EXPECT_GT(n_outside, 10u);
      EXPECT_LT(n_outside, s.cloud.opacities.size() - 10);
    }
  }
}

// GPUs sum a row of many instances by a tree, which bands cut up.
bool sums_in_slot_order(const Device& device) {
  const std::string& id = device.info().id;
  return id == "cpu" || id == "simulated";
}

// Adam's steps are of one size, so that a gradient's last bits hardly show.
void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  EXPECT_LT(worst, 1e-4f);
}

// Trains with room for a whole frame and with less, and says whether both models are equal.
void expect_equal_bits_in_bands(Device& device, const TestScene& scene, BandLimit limit) {
  SCOPED_TRACE(limit.capacity);
  const auto target = test_target(scene.camera.width, scene.camera.height, 5);
  OracleStep step;
  step.background = scene.background;
  step.opacity_reg = step.scale_reg = 0.01;
  const auto train = [&](Epilogue epilogue, BandLimit room) {
    return device_train(device, scene.cloud, scene.camera, step, target, 2, epilogue, room);
  };
  const auto whole = train(Epilogue::FusedAdam, {});
  EXPECT_NE(whole.cloud.means, scene.cloud.means);
  for (const Epilogue epilogue : {Epilogue::FusedAdam, Epilogue::GradientBuffer}) {
    const auto banded = train(epilogue, limit);
    if (sums_in_slot_order(device)) {
      EXPECT_TRUE(banded == whole);
    } else {
      expect_near(banded.cloud.means, whole.cloud.means);
      expect_near(banded.cloud.log_scales, whole.cloud.log_scales);
      expect_near(banded.cloud.opacities, whole.cloud.opacities);
      expect_near(banded.cloud.sh0, whole.cloud.sh0);
    }
  }
  // Without bands the gate closes, and so it does with too few.
  EXPECT_EQ(train(Epilogue::FusedAdam, {limit.capacity, 1}).cloud.means, scene.cloud.means);
  EXPECT_EQ(train(Epilogue::FusedAdam, {limit.capacity, 2}).cloud.means, scene.cloud.means);
}

TEST_F(Gradient, BandsOfTilesGiveEqualBits) {
  expect_equal_bits_in_bands(*device_, test_scene(600, 5, 150, 90), {400, 32});
}

TEST_F(Gradient, SlicesOfTilesGiveEqualBits) {
  expect_equal_bits_in_bands(*device_, test_scene(150, 5, 32, 32), {40, 32});
}

TEST(GradientThreads, GiveEqualBits) {
  TestScene scene = test_scene(600, 5, 150, 90);
  const auto target = test_target(150, 90, 5);
  OracleStep step;
  step.background = scene.background;
  step.opacity_reg = step.scale_reg = 0.01;
  // oneTBB starts no more threads than there are processors unless told to.
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 3);
  std::vector<DeviceModel> models;
  for (const char* id : {"cpu:1", "cpu:2", "cpu:3", "cpu:1"}) {
    const auto device = open_device(simulated::test_device(id)).or_raise();
    models.push_back(
        device_train(*device, scene.cloud, scene.camera, step, target, 3, Epilogue::FusedAdam));
  }
  for (size_t i = 1; i < models.size(); ++i) EXPECT_TRUE(models[i] == models[0]) << i;
}

}  // namespace
}  // namespace millrace::test
