// Weights of pixels and the penalty of a frame's opacity: masks, crop boxes and thin structures,
// against a direct float64 computation.
#include "loss/pixel_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "loss/loss_bench.h"

namespace millrace::test {
namespace {

constexpr uint32_t kWidth = 57, kHeight = 43;
constexpr uint32_t kPixels = kWidth * kHeight;

// A camera that looks down z from a corner, turned about its axis.
CameraRecord camera() {
  CameraRecord c = {};
  const float rotation[9] = {0.8f, 0.6f, 0, -0.6f, 0.8f, 0, 0, 0, 1};
  std::copy_n(rotation, 9, c.rotation);
  c.centre[0] = 0.3f;
  c.centre[1] = -0.2f;
  c.centre[2] = -4;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) c.translation[i] -= c.rotation[3 * i + k] * c.centre[k];
  }
  c.fx = 60;
  c.fy = 55;
  c.cx = 27;
  c.cy = 22.5f;
  c.width = kWidth;
  c.height = kHeight;
  return c;
}

struct Case {
  Case() {
    step.transaction = 4;
    step.loss.outside_weight = 1;
    step.loss.mask_threshold = 0.5f;
    step.loss.mask_penalty = 1;
    for (uint32_t i = 0; i < kPixels; ++i) {
      const auto byte = [&](uint32_t set) {
        return static_cast<uint8_t>(std::min(255.0f, 256 * random_at(set, i)));
      };
      mask.push_back(random_at(11, i) < 0.3f ? 0 : random_at(12, i) < 0.5f ? 255 : byte(13));
      structure.push_back(static_cast<uint8_t>(252 * random_at(14, i)));
      alpha.push_back(random_at(15, i));
    }
  }
  void set_crop_box(float outside) {
    step.crop.enabled = 1;
    step.loss.outside_weight = outside;
    // Turned by 30 degrees about y, then shifted.
    const float m[12] = {0.8660254f, 0, 0.5f, 0.1f, 0, 1, 0, -0.1f, -0.5f, 0, 0.8660254f, 0.2f};
    std::copy_n(m, 12, step.crop.world_to_box);
    for (int i = 0; i < 3; ++i) {
      step.crop.min[i] = -0.7f;
      step.crop.max[i] = 0.6f;
    }
  }

  StepBlock step = {};
  std::vector<uint8_t> mask, structure;
  std::vector<float> alpha;
  bool with_mask = false, with_structure = false, accepted = true;
};

struct Output {
  std::vector<float> weight, d_alpha;
  LossTotals totals;
};

Output device_output(const Case& c) {
  LossBench bench(c.step, c.accepted);
  Device& device = *bench.device;
  const Tensor cameras = upload_record(device, camera());
  const Tensor mask = Tensor::from_host(device, c.mask, Shape{kPixels}, "test");
  const Tensor structure = Tensor::from_host(device, c.structure, Shape{kPixels}, "test");
  const uint32_t tiles_x = (kWidth + 15) / 16, n_tiles = tiles_x * ((kHeight + 15) / 16);
  std::vector<float> transmittance(n_tiles * 256, 1.0f);
  for (uint32_t i = 0; i < kPixels; ++i) {
    const uint32_t x = i % kWidth, y = i / kWidth;
    transmittance[(y / 16 * tiles_x + x / 16) * 256 + y % 16 * 16 + x % 16] = 1 - c.alpha[i];
  }
  const Tensor left = Tensor::from_host(device, transmittance, Shape{n_tiles * 256}, "test");
  const Tensor weight = bench.full(kPixels, 7), d_alpha = bench.full(kPixels, 7);
  const Tensor totals = bench.full(sizeof(LossTotals) / 4, 7);
  const Tensor* bound_mask = c.with_mask ? &mask : nullptr;
  pixel_weights({bench.step, bench.control, cameras, bound_mask,
                 c.with_structure ? &structure : nullptr, weight, totals, kWidth, kHeight});
  opacity_penalty(
      {bench.step, bench.control, cameras, bound_mask, left, d_alpha, totals, kWidth, kHeight});
  const Ticket tickets[] = {read_later(weight), read_later(d_alpha), read_later(totals)};
  bench.wait_blocking();
  return {floats_of(tickets[0], kPixels), floats_of(tickets[1], kPixels),
          tickets[2].as<LossTotals>()};
}

// Whether the ray through the pixel's centre meets the box, by marching along it.
bool marches_into_box(const CropStep& crop, uint32_t x, uint32_t y) {
  const CameraRecord c = camera();
  const double u = (x + 0.5 - c.cx) / c.fx, v = (y + 0.5 - c.cy) / c.fy;
  for (int s = 0; s < 4000; ++s) {
    const double t = 0.002 * s;
    double p[3];
    for (int i = 0; i < 3; ++i) {
      p[i] = c.centre[i] + t * (u * c.rotation[i] + v * c.rotation[3 + i] + c.rotation[6 + i]);
    }
    bool inside = true;
    for (int i = 0; i < 3; ++i) {
      const float* m = crop.world_to_box + 4 * i;
      const double q = m[0] * p[0] + m[1] * p[1] + m[2] * p[2] + m[3];
      inside = inside && q >= crop.min[i] && q <= crop.max[i];
    }
    if (inside) return true;
  }
  return false;
}

double mask_value(const Case& c, uint32_t i) {
  const int byte = c.step.loss.mask_inverted ? 255 - c.mask[i] : c.mask[i];
  if (c.step.loss.mask_mode == kMaskSegmentAndIgnore) return byte > 250;
  const double m = byte / 255.0;
  return m >= c.step.loss.mask_threshold ? 1 : m;
}

void expect_weights(const Case& c, const char* what) {
  SCOPED_TRACE(what);
  const Output got = device_output(c);
  const bool masks = c.with_mask && c.step.loss.mask_mode != kMaskNone &&
                     c.step.loss.mask_mode != kMaskAlphaConsistent;
  double base_sum = 0, weight_sum = 0;
  uint32_t n_grazing = 0;
  for (uint32_t i = 0; i < kPixels; ++i) {
    const uint32_t x = i % kWidth, y = i / kWidth;
    const bool border = x < 5 || y < 5 || x + 5 >= kWidth || y + 5 >= kHeight;
    double base = masks ? mask_value(c, i) : border ? 0 : 1;
    if (c.step.crop.enabled != 0) {
      const bool hit = marches_into_box(c.step.crop, x, y) != (c.step.crop.inverse != 0);
      const double other = base * (hit ? c.step.loss.outside_weight : 1);
      base *= hit ? 1 : c.step.loss.outside_weight;
      // A march may step over the corner that a ray grazes.
      const double factor =
          c.with_structure ? 1 + c.step.loss.structure_weight * c.structure[i] / 63.0 : 1;
      if (std::abs(got.weight[i] - base * factor) > 1e-4 &&
          std::abs(got.weight[i] - other * factor) < 1e-4) {
        base = other;
        ++n_grazing;
      }
    }
    const double weight =
        base * (c.with_structure ? 1 + c.step.loss.structure_weight * c.structure[i] / 63.0 : 1);
    ASSERT_NEAR(got.weight[i], weight, 1e-5) << x << "," << y;
    base_sum += base;
    weight_sum += weight;
  }
  EXPECT_LE(n_grazing, 3u);
  EXPECT_NEAR(got.totals.base, base_sum, 1e-5 * base_sum);
  EXPECT_NEAR(got.totals.weight, weight_sum, 1e-5 * weight_sum);
}

TEST(PixelWeights, OfAPlainFrameAreOnesInsideTheBorder) { expect_weights(Case(), "plain"); }

TEST(PixelWeights, FollowTheMaskByItsModeThresholdAndInversion) {
  Case c;
  c.with_mask = true;
  for (const uint32_t mode :
       {kMaskNone, kMaskIgnore, kMaskSegment, kMaskSegmentAndIgnore, kMaskAlphaConsistent}) {
    for (const uint32_t inverted : {0u, 1u}) {
      c.step.loss.mask_mode = mode;
      c.step.loss.mask_inverted = inverted;
      c.step.loss.mask_threshold = mode == kMaskSegment ? 0.79f : 0.5f;
      expect_weights(c, std::to_string(mode).c_str());
    }
  }
}

TEST(PixelWeights, OfRaysThatMissTheCropBoxAreLess) {
  Case c;
  c.set_crop_box(0.1f);
  expect_weights(c, "box");
  c.step.crop.inverse = 1;
  expect_weights(c, "inverse");
  c.with_mask = c.with_structure = true;
  c.step.loss.mask_mode = kMaskIgnore;
  c.step.loss.structure_weight = 0.5f;
  expect_weights(c, "all");
}

TEST(PixelWeights, OfACameraInsideTheBoxDoNotDependOnIt) {
  Case c;
  const Output plain = device_output(c);
  c.set_crop_box(0.1f);
  for (int i = 0; i < 3; ++i) {
    c.step.crop.min[i] = -9;
    c.step.crop.max[i] = 9;
  }
  const Output boxed = device_output(c);
  EXPECT_EQ(boxed.weight, plain.weight);
  EXPECT_EQ(boxed.totals.base, plain.totals.base);
}

TEST(PixelWeights, OfStructureLeaveTheDenominatorAlone) {
  Case c;
  const Output plain = device_output(c);
  c.with_structure = true;
  c.step.loss.structure_weight = 0;
  EXPECT_EQ(device_output(c).weight, plain.weight) << "a weight of 0 is no weight";
  c.step.loss.structure_weight = 0.5f;
  std::fill(c.structure.begin(), c.structure.end(), uint8_t{0});
  EXPECT_EQ(device_output(c).weight, plain.weight) << "no structure";
  std::fill(c.structure.begin(), c.structure.end(), uint8_t{126});  // S = 2
  const Output doubled = device_output(c);
  EXPECT_EQ(doubled.totals.base, plain.totals.base);
  EXPECT_EQ(doubled.totals.weight, 2 * plain.totals.weight);
  for (uint32_t i = 0; i < kPixels; ++i) ASSERT_EQ(doubled.weight[i], 2 * plain.weight[i]);
}

TEST(OpacityPenalty, ValueAndGradientAreThoseOfFiniteDifferences) {
  for (const uint32_t mode :
       {kMaskNone, kMaskIgnore, kMaskSegment, kMaskSegmentAndIgnore, kMaskAlphaConsistent}) {
    for (const bool boxed : {false, true}) {
      SCOPED_TRACE(testing::Message() << "mode " << mode << " boxed " << boxed);
      Case c;
      c.with_mask = true;
      c.step.loss.mask_mode = mode;
      c.step.loss.mask_penalty = 3;
      if (boxed) c.set_crop_box(0.25f);
      const Output got = device_output(c);
      // The crop box's weights, which another test has.
      Case rays = c;
      rays.with_mask = false;
      rays.step.loss.mask_mode = kMaskNone;
      const std::vector<float> weights = device_output(rays).weight;
      const auto term = [&](uint32_t i, double alpha) {
        const double m = c.mask[i] / 255.0;
        double value = 0;
        if (mode == kMaskSegment) value = alpha * std::pow(1 - (m >= 0.5 ? 1 : m), 2);
        if (mode == kMaskSegmentAndIgnore) value = c.mask[i] >= 128 && c.mask[i] <= 250 ? alpha : 0;
        if (mode == kMaskAlphaConsistent) value = std::abs(alpha - m);
        return 3 * value / kPixels;
      };
      double sum = 0;
      for (uint32_t i = 0; i < kPixels; ++i) {
        const uint32_t x = i % kWidth, y = i / kWidth;
        const bool border = x < 5 || y < 5 || x + 5 >= kWidth || y + 5 >= kHeight;
        if (boxed && border) continue;  // `weights` has none there
        const double w = boxed ? weights[i] : 1, a = c.alpha[i], h = 1e-7;
        sum += w * term(i, a);
        const double slope = w * (term(i, a + h) - term(i, a - h)) / (2 * h);
        ASSERT_NEAR(got.d_alpha[i], slope, 1e-4 * 3 / kPixels) << i;
      }
      if (boxed) {
        EXPECT_GE(got.totals.penalty, sum - 1e-6);
      } else {
        EXPECT_NEAR(got.totals.penalty, sum, 1e-5 * std::max(sum, 0.1));
      }
    }
  }
}

TEST(OpacityPenalty, OfAFrameWithoutAMaskIsZero) {
  Case c;
  c.step.loss.mask_mode = kMaskSegment;
  const Output got = device_output(c);
  EXPECT_EQ(got.totals.penalty, 0.0f);
  for (const float d : got.d_alpha) ASSERT_EQ(d, 0.0f);
}

TEST(PixelWeights, AndThePenaltyAreNotWrittenForARefusedStep) {
  Case c;
  c.accepted = false;
  c.with_mask = c.with_structure = true;
  const Output got = device_output(c);
  for (const float w : got.weight) ASSERT_EQ(w, 7.0f);
  for (const float d : got.d_alpha) ASSERT_EQ(d, 7.0f);
  EXPECT_EQ(got.totals.base, 7.0f);
  EXPECT_EQ(got.totals.penalty, 7.0f);
}

}  // namespace
}  // namespace millrace::test
