// adam_step against float64, its clamp, and what it does with gradients that are not numbers.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "kernels/direct_call.h"

namespace millrace::test {
namespace {

constexpr uint32_t kRows = 37;  // not a multiple of a block or of a vector
constexpr uint32_t kRestLanes = 9;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Group {
  std::vector<float> value, first, second, gradient;
  explicit Group(uint32_t lanes)
      : value(row_floats(kRows, lanes)),
        first(value.size()),
        second(value.size()),
        gradient(value.size()) {}
};

struct Bench {
  Control control = open_control(kRows);
  StepBlock step = {};
  Group geometry{kGeometryLanes}, rest{kRestLanes};

  void adam(uint32_t t, float rate) {
    step.transaction = t;
    step.step = t;
    step.sh_degree = 1;
    const double bias1 = 1 - std::pow(0.9, t + 1.0), bias2 = 1 - std::pow(0.999, t + 1.0);
    step.rate_means = step.rate_scales = step.rate_rotations = step.rate_opacities = step.rate_sh0 =
        step.rate_sh_rest = static_cast<float>(rate / bias1);
    step.inv_sqrt_bias2 = static_cast<float>(1 / std::sqrt(bias2));
    control.gate.accepted = t;
    call_kernel(kernels::adam_step, kRows, BackwardParams{kRestLanes, 0, 0, 0},
                {step, control, geometry.gradient, rest.gradient, geometry.value, geometry.first,
                 geometry.second, rest.value, rest.first, rest.second});
  }
};

float random_gradient(uint32_t t, uint32_t index) {
  const auto words = philox(1, t, RandomPurpose::Synthetic, index);
  // Magnitudes over six decades, as training has them.
  const float magnitude = std::pow(10.0f, 6.0f * uniform_open(words[0]) - 5.0f);
  return magnitude * (2.0f * uniform_open(words[1]) - 1.0f);
}

struct Reference {
  double p, m, v;
  void step(double g, uint32_t t, double rate) {
    const double bias1 = 1 - std::pow(0.9, t + 1.0), bias2 = 1 - std::pow(0.999, t + 1.0);
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= rate / bias1 * m / (std::sqrt(v) / std::sqrt(bias2) + 1e-15);
  }
};

TEST(Adam, StaysWithin1em5OfFloat64Over500Steps) {
  constexpr float kRate = 1e-3f;
  Bench bench;
  for (Group* group : {&bench.geometry, &bench.rest}) {
    for (uint32_t i = 0; i < group->value.size(); ++i) group->value[i] = random_gradient(9999, i);
  }
  std::vector<Reference> geometry, rest;
  for (const float p : bench.geometry.value) geometry.push_back({p, 0, 0});
  for (const float p : bench.rest.value) rest.push_back({p, 0, 0});
  for (uint32_t t = 0; t < 500; ++t) {
    for (uint32_t i = 0; i < geometry.size(); ++i) {
      bench.geometry.gradient[i] = random_gradient(t, i);
      geometry[i].step(bench.geometry.gradient[i], t, kRate);
    }
    for (uint32_t i = 0; i < rest.size(); ++i) {
      bench.rest.gradient[i] = random_gradient(t, 100000 + i);
      rest[i].step(bench.rest.gradient[i], t, kRate);
    }
    bench.adam(t, kRate);
  }
  for (uint32_t row = 0; row < kRows; ++row) {
    for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) {
      const uint64_t i = row_index(row, lane, kGeometryLanes);
      EXPECT_NEAR(bench.geometry.value[i], geometry[i].p, 1e-5) << row << " " << lane;
    }
    for (uint32_t lane = 0; lane < kRestLanes; ++lane) {
      const uint64_t i = row_index(row, lane, kRestLanes);
      EXPECT_NEAR(bench.rest.value[i], rest[i].p, 1e-5) << row << " " << lane;
    }
  }
  EXPECT_EQ(bench.control.counts.skipped_rows, 0u);
}

TEST(Adam, RowsBeyondTheLiveOnesAreNotTouched) {
  Bench bench;
  for (float& g : bench.geometry.gradient) g = 1;
  bench.adam(0, 1e-2f);
  for (uint32_t row = kRows; row < 2 * kRowBlock; ++row) {
    for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) {
      EXPECT_EQ(bench.geometry.value[row_index(row, lane, kGeometryLanes)], 0.0f);
    }
  }
  EXPECT_NEAR(bench.geometry.value[row_index(kRows - 1, 0, kGeometryLanes)], -1e-2f, 1e-6);
}

TEST(Adam, LanesAboveTheActiveDegreeAreNotTouched) {
  Bench bench;
  for (float& g : bench.rest.gradient) g = 1;
  bench.step.sh_degree = 0;
  bench.control.gate.accepted = 0;
  bench.step.rate_sh_rest = 1;
  bench.step.inv_sqrt_bias2 = 1;
  call_kernel(kernels::adam_step, kRows, BackwardParams{kRestLanes, 0, 0, 0},
              {bench.step, bench.control, bench.geometry.gradient, bench.rest.gradient,
               bench.geometry.value, bench.geometry.first, bench.geometry.second, bench.rest.value,
               bench.rest.first, bench.rest.second});
  for (const float p : bench.rest.value) EXPECT_EQ(p, 0.0f);
  for (const float m : bench.rest.first) EXPECT_EQ(m, 0.0f);
}

TEST(Adam, ANonFiniteGradientSkipsItsRowAndNoOtherAndIsCounted) {
  Bench bench;
  for (float& g : bench.geometry.gradient) g = 1;
  for (float& g : bench.rest.gradient) g = 1;
  bench.geometry.gradient[row_index(3, kLaneOpacity, kGeometryLanes)] = kNan;
  bench.rest.gradient[row_index(33, 4, kRestLanes)] = std::numeric_limits<float>::infinity();
  bench.adam(0, 1e-2f);
  EXPECT_EQ(bench.control.counts.skipped_rows, 2u);
  for (uint32_t row = 0; row < kRows; ++row) {
    const bool skipped = row == 3 || row == 33;
    for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) {
      const uint64_t i = row_index(row, lane, kGeometryLanes);
      EXPECT_EQ(bench.geometry.value[i] == 0.0f, skipped) << row << " " << lane;
      EXPECT_EQ(bench.geometry.first[i] == 0.0f, skipped) << row << " " << lane;
    }
    for (uint32_t lane = 0; lane < kRestLanes; ++lane) {
      EXPECT_EQ(bench.rest.value[row_index(row, lane, kRestLanes)] == 0.0f, skipped) << row;
    }
  }
  bench.adam(1, 1e-2f);
  EXPECT_EQ(bench.control.counts.skipped_rows, 4u) << "the count runs on";
}

TEST(Adam, GradientsAreClampedAt1e4) {
  Bench bench;
  bench.geometry.gradient[row_index(0, kLaneMean, kGeometryLanes)] = 1e9f;
  bench.geometry.gradient[row_index(1, kLaneMean, kGeometryLanes)] = -1e9f;
  bench.geometry.gradient[row_index(2, kLaneMean, kGeometryLanes)] = 1e4f;
  bench.adam(0, 1e-2f);
  const auto first = [&](uint32_t row) {
    return bench.geometry.first[row_index(row, kLaneMean, kGeometryLanes)];
  };
  EXPECT_EQ(first(0), first(2));
  EXPECT_EQ(first(1), -first(2));
  EXPECT_NEAR(first(2), 1e3, 1e-2);
}

TEST(Adam, RegularisersPullOpacityAndScaleDown) {
  Bench bench;
  bench.step.opacity_reg = 0.01f;
  bench.step.scale_reg = 0.01f;
  bench.adam(0, 1e-2f);
  const double expected = 0.1 * 0.01 / kRows * 0.25;  // (1 - beta1) reg / N o (1 - o) at o = 0.5
  EXPECT_NEAR(bench.geometry.first[row_index(5, kLaneOpacity, kGeometryLanes)], expected,
              1e-6 * expected);
  const double scale = 0.1 * 0.01 / (3.0 * kRows);  // s = exp(0) = 1
  EXPECT_NEAR(bench.geometry.first[row_index(5, kLaneScale, kGeometryLanes)], scale, 1e-6 * scale);
  EXPECT_LT(bench.geometry.value[row_index(5, kLaneOpacity, kGeometryLanes)], 0.0f);
  EXPECT_LT(bench.geometry.value[row_index(5, kLaneScale, kGeometryLanes)], 0.0f);
}

}  // namespace
}  // namespace millrace::test
