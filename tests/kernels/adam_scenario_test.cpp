// adam_step against float64, its clamp, and what it does with gradients that are not numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "kernels/crop.h"
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

// The gradient that Adam saw of row `row`, lane `lane`, from its first moment after one step.
double seen_gradient(const Bench& bench, uint32_t row, uint32_t lane) {
  return 10.0 * bench.geometry.first[row_index(row, lane, kGeometryLanes)];
}

// The rank's loss of one row in double precision, and its slope by a central difference.
double rank_loss(const std::array<double, 3>& raw) {
  double square[3], total = 0, entropy = 0;
  for (int k = 0; k < 3; ++k) total += square[k] = std::exp(2 * raw[k]);
  for (const double s2 : square) entropy -= s2 / total * std::log(s2 / total);
  return std::max(0.0, -std::log(std::expm1(entropy) + 1e-5));
}

TEST(Adam, TheRankGradientHoldsFromBallsToNeedles) {
  Bench bench;
  bench.step.mrnf.erank_reg = 0.5f;
  // Ball, disc, needle, longer needles, and some that are far from 1 in size.
  const std::array<std::array<double, 3>, 8> raws = {{{0, 0, 0.1},
                                                      {-3, 0, 0.25},
                                                      {-2, 0, -1.5},
                                                      {-4, -3, 0},
                                                      {0, -5, -6},
                                                      {-20, -18, -23},
                                                      {9, 6, 7},
                                                      {-30, -31, -30.5}}};
  for (uint32_t row = 0; row < raws.size(); ++row) {
    for (uint32_t k = 0; k < 3; ++k) {
      bench.geometry.value[row_index(row, kLaneScale + k, kGeometryLanes)] =
          static_cast<float>(raws[row][k]);
    }
  }
  bench.adam(0, 0);
  for (uint32_t row = 0; row < raws.size(); ++row) {
    for (uint32_t k = 0; k < 3; ++k) {
      std::array<double, 3> ahead = raws[row], behind = raws[row];
      ahead[k] += 1e-5;
      behind[k] -= 1e-5;
      const double slope = 0.5 / kRows * (rank_loss(ahead) - rank_loss(behind)) / 2e-5;
      EXPECT_NEAR(seen_gradient(bench, row, kLaneScale + k), slope, 1e-3 * std::abs(slope) + 1e-7)
          << row << " " << k;
    }
  }
  EXPECT_EQ(seen_gradient(bench, 0, kLaneScale), 0.0) << "a ball is no needle";
  EXPECT_GT(std::abs(seen_gradient(bench, 4, kLaneScale)), 1e-2);
}

TEST(Adam, RegularisersOfColourPullBackInsideOnly) {
  Bench bench;
  bench.step.mrnf.dc_reg = 0.3f;
  bench.step.mrnf.sh_rest_reg = 0.2f;
  constexpr double kEdge = 0.5 / 0.28209479177387814;
  const float values[] = {2.5f, -2.0f, 1.7f, 0.0f};
  for (uint32_t row = 0; row < 4; ++row) {
    bench.geometry.value[row_index(row, kLaneSh0 + 1, kGeometryLanes)] = values[row];
  }
  bench.rest.value[row_index(3, 5, kRestLanes)] = -0.7f;
  bench.adam(0, 0);
  // The sum over rows of a third of the squares; no division by N.
  EXPECT_NEAR(seen_gradient(bench, 0, kLaneSh0 + 1), 2 * 0.3 / 3 * (2.5 - kEdge), 1e-6);
  EXPECT_NEAR(seen_gradient(bench, 1, kLaneSh0 + 1), -2 * 0.3 / 3 * (2.0 - kEdge), 1e-6);
  EXPECT_EQ(seen_gradient(bench, 2, kLaneSh0 + 1), 0.0);
  EXPECT_EQ(seen_gradient(bench, 3, kLaneSh0 + 1), 0.0);
  const double mean = 2 * 0.2 * -0.7 / (kRows * kRestLanes);
  EXPECT_NEAR(10 * bench.rest.first[row_index(3, 5, kRestLanes)], mean, 1e-5 * std::abs(mean));
  EXPECT_EQ(bench.rest.first[row_index(3, 4, kRestLanes)], 0.0f);
}

// A box turned by 30 degrees about z around (1, 0, 0), half extents 1, 0.5 and 2.
CropStep tilted_box() {
  CropStep crop = {};
  const float c = std::cos(0.5235988f), s = std::sin(0.5235988f);
  const float m[12] = {c, s, 0, -c, -s, c, 0, s, 0, 0, 1, 0};
  const float half[3] = {1, 0.5f, 2};
  std::copy(std::begin(m), std::end(m), crop.world_to_box);
  for (int axis = 0; axis < 3; ++axis) {
    crop.min[axis] = -half[axis];
    crop.max[axis] = half[axis];
  }
  crop.enabled = 1;
  crop.rate_scale = 0.1f;
  return crop;
}

Bench bench_in_box() {
  Bench bench;
  for (uint32_t row = 0; row < kRows; ++row) {
    for (uint32_t k = 0; k < 3; ++k) {
      bench.geometry.value[row_index(row, kLaneMean + k, kGeometryLanes)] =
          random_gradient(5, 3 * row + k) * 0.3f + (k == 0 ? 1.0f : 0.0f);
    }
  }
  // Two that are plainly outside.
  bench.geometry.value[row_index(1, kLaneMean, kGeometryLanes)] = 9;
  bench.geometry.value[row_index(34, kLaneMean + 2, kGeometryLanes)] = -9;
  for (float& g : bench.geometry.gradient) g = 1;
  for (float& g : bench.rest.gradient) g = 1;
  return bench;
}

// How far Adam moved the opacity of each row.
std::vector<float> moves(const Bench& before, const CropStep& crop, uint64_t* skipped = nullptr) {
  Bench bench = before;
  bench.step.crop = crop;
  bench.adam(0, 1e-2f);
  std::vector<float> out;
  for (uint32_t row = 0; row < kRows; ++row) {
    const uint64_t i = row_index(row, kLaneOpacity, kGeometryLanes);
    out.push_back(bench.geometry.value[i] - before.geometry.value[i]);
    const uint64_t rest = row_index(row, 2, kRestLanes);
    EXPECT_FLOAT_EQ(bench.rest.value[rest] - before.rest.value[rest], out.back()) << row;
    EXPECT_EQ(bench.geometry.first[i] == 0.0f, out.back() == 0.0f) << row;
  }
  if (skipped) *skipped = bench.control.counts.skipped_rows;
  return out;
}

TEST(Adam, RowsOutsideTheCropBoxTakeATenthOfTheSteps) {
  const Bench bench = bench_in_box();
  CropStep crop = tilted_box();
  const std::vector<float> slow = moves(bench, crop);
  crop.inverse = 1;
  const std::vector<float> slow_inside = moves(bench, crop);
  size_t n_outside = 0;
  for (uint32_t row = 0; row < kRows; ++row) {
    float mean[3];
    for (uint32_t k = 0; k < 3; ++k) {
      mean[k] = bench.geometry.value[row_index(row, kLaneMean + k, kGeometryLanes)];
    }
    const bool outside = kernels::outside_crop(tilted_box(), mean);
    n_outside += outside;
    EXPECT_NEAR(slow[row], outside ? -1e-3 : -1e-2, 1e-6) << row;
    EXPECT_NEAR(slow_inside[row], outside ? -1e-2 : -1e-3, 1e-6) << row;
    EXPECT_EQ(kernels::crop_score(tilted_box(), mean), outside ? 0.1f : 1.0f);
    EXPECT_EQ(kernels::crop_score(CropStep{}, mean), 1.0f);
  }
  EXPECT_GT(n_outside, 2u);
  EXPECT_LT(n_outside, kRows - 2);
}

TEST(Adam, ARateOfZeroLeavesRowsOutsideUntouchedAndCountsNone) {
  const Bench bench = bench_in_box();
  CropStep crop = tilted_box();
  crop.rate_scale = 0;
  uint64_t skipped = 1;
  const std::vector<float> moved = moves(bench, crop, &skipped);
  EXPECT_EQ(moved[1], 0.0f);
  EXPECT_EQ(moved[34], 0.0f);
  EXPECT_GT(std::ranges::count_if(moved, [](float x) { return x < 0; }), 2);
  EXPECT_EQ(skipped, 0u);
  // A box that is switched off changes nothing.
  crop.enabled = 0;
  for (const float move : moves(bench, crop)) EXPECT_NEAR(move, -1e-2, 1e-6);
}

}  // namespace
}  // namespace millrace::test
