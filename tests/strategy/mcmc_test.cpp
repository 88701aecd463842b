// MCMC: relocation, growth and noise against the formulas of the paper.
#include "strategy/mcmc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "strategy/strategy_bench.h"

namespace millrace::test {
namespace {

constexpr double kMinOpacity = 0.005;
constexpr uint32_t kNoGrowth = 0;  // a cap below the number of rows

void refine(Bench& bench, const StepBlock& block) {
  const Tensor step = upload_step_block(*bench.device, block);
  const McmcScratch scratch = make_mcmc_scratch(bench.model);
  decide(bench.model, step, /*check_rows=*/true);
  mcmc_refine(bench.model, step, scratch);
  commit(bench.model, step, CommitMode::Refine);
}

// Opacity and scale factor of each of n copies (eq. 9 of the paper); C(i-1, k) by multiplication.
struct Shares {
  double opacity, scale;
};
Shares shares_of(double opacity, int n) {
  const double shared = 1 - std::pow(1 - opacity, 1.0 / n);
  double sum = 0;
  for (int i = 1; i <= n; ++i) {
    for (int k = 0; k < i; ++k) {
      const double binomial = std::tgamma(i) / (std::tgamma(k + 1) * std::tgamma(i - k));
      sum += binomial * (k % 2 ? -1 : 1) * std::pow(shared, k + 1) / std::sqrt(k + 1.0);
    }
  }
  return {std::clamp(shared, kMinOpacity, 1 - 1e-7), opacity / sum};
}

// Every second row dead.
double half_dead(uint32_t row) { return row % 2 ? 0.001 : 0.1 + 0.008 * (row % 100); }

// Which of the rows of `before` row `row` of `after` is a copy of: means are never changed by a
// refinement.
uint64_t source_of(const Rows& before, const Rows& after, uint64_t row) {
  for (uint64_t i = 0; i < before.count(); ++i) {
    if (after.geometry(row, 0) == before.geometry(i, 0) &&
        after.geometry(row, 1) == before.geometry(i, 1)) {
      return i;
    }
  }
  return ~0ull;
}

TEST(McmcRelocation, SourcesAndCopiesFollowThePapersFormula) {
  Bench bench(make_cloud(60, 1, half_dead), 64);
  const Rows before = bench.rows_blocking();
  refine(bench, mcmc_block(5, kNoGrowth));
  const Rows after = bench.rows_blocking();
  ASSERT_EQ(after.count(), 60u);
  std::map<uint64_t, int> times;
  for (uint64_t row = 1; row < 60; row += 2) ++times[source_of(before, after, row)];
  int most = 0;
  for (const auto& [source, n] : times) {
    ASSERT_LT(source, 60u);
    ASSERT_EQ(source % 2, 0u) << "a dead row was drawn";
    const Shares expected = shares_of(before.opacity(source), n + 1);
    EXPECT_NEAR(after.opacity(source), expected.opacity, 1e-6);
    for (uint32_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(after.geometry(source, kLaneScale + k),
                  before.geometry(source, kLaneScale + k) + std::log(expected.scale), 2e-6);
    }
    most = std::max(most, n);
  }
  EXPECT_GT(most, 1) << "the scene must draw one row more than once";
}

TEST(McmcRelocation, ACopyEqualsItsSourceAndBothHaveZeroMoments) {
  Bench bench(make_cloud(60, 1, half_dead), 64);
  const Rows before = bench.rows_blocking();
  refine(bench, mcmc_block(5, kNoGrowth));
  const Rows after = bench.rows_blocking();
  std::vector<bool> drawn(60);
  for (uint64_t row = 1; row < 60; row += 2) {
    const uint64_t source = source_of(before, after, row);
    drawn[row] = drawn[source] = true;
    EXPECT_EQ(after.row_of(0, row), after.row_of(0, source));
    EXPECT_EQ(after.row_of(3, row), after.row_of(3, source));
    EXPECT_EQ(after.row_of(3, row), before.row_of(3, source));
  }
  for (uint64_t row = 0; row < 60; ++row) {
    for (const int moments : {1, 2, 4, 5}) {
      const auto now = after.row_of(moments, row);
      if (drawn[row]) {
        EXPECT_TRUE(std::ranges::all_of(now, [](float m) { return m == 0; })) << row;
      } else {
        EXPECT_EQ(now, before.row_of(moments, row)) << row;
      }
    }
    if (!drawn[row]) {
      EXPECT_EQ(after.row_of(0, row), before.row_of(0, row)) << row;
    }
  }
}

TEST(McmcRelocation, CopiesAreCountedUpTo51) {
  // One live row takes all 99 dead ones; opacity 0.9 keeps the share above the clamp.
  Bench bench(make_cloud(100, 2, [](uint32_t row) { return row == 7 ? 0.9 : 0.001; }), 128);
  const Rows before = bench.rows_blocking();
  refine(bench, mcmc_block(5, kNoGrowth));
  const Rows after = bench.rows_blocking();
  const Shares expected = shares_of(before.opacity(7), 51);
  EXPECT_NEAR(after.opacity(7), expected.opacity, 1e-6);
  EXPECT_NEAR(after.geometry(7, kLaneScale),
              before.geometry(7, kLaneScale) + std::log(expected.scale), 1e-5);
}

TEST(McmcRelocation, TheScaleUsesTheOpacityBeforeItsClamp) {
  // A share of 1 - 0.98^(1/51), about 0.0004, is clamped to min_opacity.
  Bench bench(make_cloud(100, 2, [](uint32_t row) { return row == 7 ? 0.02 : 0.001; }), 128);
  const Rows before = bench.rows_blocking();
  refine(bench, mcmc_block(5, kNoGrowth));
  const Rows after = bench.rows_blocking();
  const Shares expected = shares_of(before.opacity(7), 51);
  ASSERT_EQ(expected.opacity, kMinOpacity);
  EXPECT_NEAR(after.opacity(7), kMinOpacity, 1e-7);
  EXPECT_NEAR(after.geometry(7, kLaneScale),
              before.geometry(7, kLaneScale) + std::log(expected.scale), 1e-5);
}

TEST(McmcRelocation, DrawsAreInProportionToOpacity) {
  // Ten live rows of opacity 0.08 to 0.8 and 4086 dead ones.
  constexpr uint32_t kRows = 4096, kLive = 10;
  const auto opacity = [](uint32_t row) { return row < kLive ? 0.08 * (row + 1) : 0.001; };
  Bench bench(make_cloud(kRows, 3, opacity), kRows);
  const Rows before = bench.rows_blocking();
  refine(bench, mcmc_block(5, kNoGrowth));
  const Rows after = bench.rows_blocking();
  std::map<float, uint32_t> live_by_mean;
  for (uint32_t i = 0; i < kLive; ++i) live_by_mean[before.geometry(i, 0)] = i;
  std::vector<double> times(kLive);
  for (uint64_t row = kLive; row < kRows; ++row) ++times[live_by_mean.at(after.geometry(row, 0))];
  double chi2 = 0, total = 0;
  for (uint32_t i = 0; i < kLive; ++i) total += opacity(i);
  for (uint32_t i = 0; i < kLive; ++i) {
    const double expected = (kRows - kLive) * opacity(i) / total;
    chi2 += (times[i] - expected) * (times[i] - expected) / expected;
  }
  EXPECT_LT(chi2, 27.9) << "99.9 % of chi-square with 9 degrees of freedom";
  EXPECT_GT(chi2, 1.15) << "0.1 %: draws this even are not random";
}

TEST(McmcRelocation, ARowWithoutRotationIsDead) {
  GaussianCloud cloud = make_cloud(40, 4, [](uint32_t) { return 0.5; });
  for (size_t k = 0; k < 4; ++k) cloud.rotations[4 * 9 + k] = 0;
  Bench bench(cloud, 64);
  const Rows before = bench.rows_blocking();
  refine(bench, mcmc_block(5, kNoGrowth));
  const Rows after = bench.rows_blocking();
  EXPECT_EQ(after.control.counts.dead, 1u);
  EXPECT_NE(after.geometry(9, 0), before.geometry(9, 0));
}

TEST(McmcRefine, NothingHappensWhereNoRowIsDeadAndTheCapIsReached) {
  Bench bench(make_cloud(100, 5, [](uint32_t) { return 0.5; }), 128);
  const Rows before = bench.rows_blocking();
  refine(bench, mcmc_block(5, 100));
  EXPECT_TRUE(same_rows(before, bench.rows_blocking()));
}

TEST(McmcRefine, NothingHappensWhereEveryRowIsDead) {
  Bench bench(make_cloud(100, 5, [](uint32_t) { return 0.001; }), 128);
  const Rows before = bench.rows_blocking();
  refine(bench, mcmc_block(5, 1000));
  const Rows after = bench.rows_blocking();
  EXPECT_TRUE(same_rows(before, after));
  EXPECT_EQ(after.control.gate.committed, 5u) << "an accepted transaction all the same";
}

TEST(McmcRefine, ASingleRowStaysAsItIs) {
  Bench bench(make_cloud(1, 5, [](uint32_t) { return 0.5; }), 32);
  const Rows before = bench.rows_blocking();
  refine(bench, mcmc_block(5, 1000));
  EXPECT_TRUE(same_rows(before, bench.rows_blocking()));
}

TEST(McmcGrowth, AddsATwentiethOfTheRowsRoundedDown) {
  for (const uint32_t n : {19u, 20u, 39u, 40u, 999u}) {
    Bench bench(make_cloud(n, 6, [](uint32_t) { return 0.5; }), 2048);
    const Rows before = bench.rows_blocking();
    refine(bench, mcmc_block(5, 5000));
    const Rows after = bench.rows_blocking();
    ASSERT_EQ(after.count(), n + n / 20);
    EXPECT_EQ(mcmc_row_bound(n, 5000), n + n / 20);
    for (uint64_t row = n; row < after.count(); ++row) {
      const uint64_t source = source_of(before, after, row);
      ASSERT_LT(source, n);
      EXPECT_EQ(after.row_of(0, row), after.row_of(0, source));
      EXPECT_EQ(after.row_of(3, row), after.row_of(3, source));
      EXPECT_LT(after.opacity(row), before.opacity(source));
      for (const int moments : {1, 2, 4, 5}) {
        EXPECT_TRUE(
            std::ranges::all_of(after.row_of(moments, row), [](float m) { return m == 0; }));
      }
    }
  }
}

TEST(McmcGrowth, StopsAtTheCap) {
  Bench bench(make_cloud(100, 6, [](uint32_t) { return 0.5; }), 256);
  refine(bench, mcmc_block(5, 103));
  EXPECT_EQ(bench.rows_blocking().count(), 103u);
  refine(bench, mcmc_block(9, 103));
  EXPECT_EQ(bench.rows_blocking().count(), 103u);
}

TEST(McmcRefine, ChangesNothingBehindAClosedGate) {
  Bench bench(make_cloud(100, 7, half_dead), 128);
  StepBlock stale = mcmc_block(5, 1000);
  stale.epoch = 3;  // not the gate's
  const Rows before = bench.rows_blocking();
  refine(bench, stale);
  const Rows after = bench.rows_blocking();
  EXPECT_TRUE(same_rows(before, after));
  EXPECT_EQ(after.control.gate.committed, kNoTransaction);
}

TEST(McmcRefine, ARefinementWithoutRoomClosesTheGateAndItsReplayIsAsIfThereHadBeenRoom) {
  const GaussianCloud cloud = make_cloud(640, 7, half_dead);
  Bench roomy(cloud, 1024), tight(cloud, 640);
  refine(roomy, mcmc_block(5, 5000));
  const Rows before = tight.rows_blocking();
  refine(tight, mcmc_block(5, 5000));
  const Rows refused = tight.rows_blocking();
  EXPECT_TRUE(same_rows(before, refused));
  EXPECT_EQ(refused.control.gate.closed, 1u);
  EXPECT_EQ(refused.control.gate.need_rows, 672u);
  grow_rows(tight.model, 672);
  reopen_gate(tight.model, 1);
  StepBlock replay = mcmc_block(5, 5000);
  replay.epoch = 1;
  refine(tight, replay);
  EXPECT_TRUE(same_rows(roomy.rows_blocking(), tight.rows_blocking()));
}

TEST(McmcRefine, IsAFunctionOfSeedAndStepForAnyNumberOfThreads) {
  const GaussianCloud cloud = make_cloud(9000, 8, half_dead);
  const auto refined = [&](const char* device, uint64_t transaction, uint64_t seed) {
    Bench bench(cloud, 10000, device);
    refine(bench, mcmc_block(transaction, 20000, seed));
    return bench.rows_blocking();
  };
  const Rows one = refined("cpu:1", 5, 42);
  EXPECT_TRUE(same_rows(one, refined("cpu:3", 5, 42)));
  EXPECT_FALSE(same_rows(one, refined("cpu:1", 9, 42)));
  EXPECT_FALSE(same_rows(one, refined("cpu:1", 5, 43)));
}

void noise(Bench& bench, StepBlock block, float scale) {
  block.noise_scale = scale;
  const Tensor step = upload_step_block(*bench.device, block);
  decide(bench.model, step, false);
  mcmc_noise(bench.model, step);
  commit(bench.model, step, CommitMode::Step);
}

TEST(McmcNoise, HasTheShapeOfTheSquaredCovariance) {
  // Identical Gaussians: displacements are Sigma eps w s, so their covariance is (w s)^2 Sigma
  // Sigma^T.
  constexpr uint32_t kRows = 20000;
  constexpr float kScale = 0.7f;
  constexpr double kOpacity = 0.01;
  GaussianCloud cloud = make_cloud(kRows, 9, [](uint32_t) { return kOpacity; });
  const double sigma[3] = {0.5, 1.0, 2.0};
  const double q[4] = {0.8, 0.4, -0.2, 0.4};  // unit
  for (uint32_t i = 0; i < kRows; ++i) {
    for (uint32_t k = 0; k < 3; ++k) {
      cloud.means[3 * i + k] = 0;
      cloud.log_scales[3 * i + k] = static_cast<float>(std::log(sigma[k]));
    }
    for (uint32_t k = 0; k < 4; ++k) cloud.rotations[4 * i + k] = static_cast<float>(3 * q[k]);
  }
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  const double r[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                          {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                          {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
  const double factor = kScale / (1 + std::exp(100 * (kOpacity - kMinOpacity)));
  double expected[3][3] = {};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) {
        expected[i][j] += factor * factor * std::pow(sigma[k], 4) * r[i][k] * r[j][k];
      }
    }
  }
  Bench bench(cloud, kRows);
  noise(bench, mcmc_block(40, kRows), kScale);
  const Rows after = bench.rows_blocking();
  double mean[3] = {}, covariance[3][3] = {};
  for (uint64_t row = 0; row < kRows; ++row) {
    for (uint32_t i = 0; i < 3; ++i) {
      mean[i] += double{after.geometry(row, i)} / kRows;
      for (uint32_t j = 0; j < 3; ++j) {
        covariance[i][j] += double{after.geometry(row, i)} * after.geometry(row, j) / kRows;
      }
    }
  }
  for (int i = 0; i < 3; ++i) {
    // Four standard errors; that of a covariance is sqrt((a b + c^2) / n).
    EXPECT_NEAR(mean[i], 0, 4 * std::sqrt(expected[i][i] / kRows));
    for (int j = 0; j < 3; ++j) {
      const double error =
          std::sqrt((expected[i][i] * expected[j][j] + expected[i][j] * expected[i][j]) / kRows);
      EXPECT_NEAR(covariance[i][j], expected[i][j], 4 * error) << i << j;
    }
  }
}

TEST(McmcNoise, MovesFaintRowsAndLeavesOpaqueOnes) {
  Bench bench(make_cloud(100, 10, [](uint32_t row) { return row % 2 ? 0.9 : 0.005; }), 128);
  const Rows before = bench.rows_blocking();
  noise(bench, mcmc_block(40, 100), 100);
  const Rows after = bench.rows_blocking();
  for (uint64_t row = 0; row < 100; ++row) {
    EXPECT_EQ(after.row_of(0, row) == before.row_of(0, row), row % 2 == 1) << row;
    for (uint32_t lane = kLaneScale; lane < kGeometryLanes; ++lane) {
      EXPECT_EQ(after.geometry(row, lane), before.geometry(row, lane));
    }
  }
}

TEST(McmcNoise, OfAnotherStepIsOtherNoise) {
  const GaussianCloud cloud = make_cloud(10, 10, [](uint32_t) { return 0.005; });
  Bench a(cloud, 32), b(cloud, 32), c(cloud, 32);
  noise(a, mcmc_block(40, 10), 1);
  noise(b, mcmc_block(40, 10), 1);
  noise(c, mcmc_block(44, 10), 1);
  const Rows rows = a.rows_blocking();
  EXPECT_TRUE(same_rows(rows, b.rows_blocking()));
  EXPECT_FALSE(same_rows(rows, c.rows_blocking()));
}

TEST(McmcNoise, WritesNothingBehindAClosedGateOrAtScaleZero) {
  Bench bench(make_cloud(10, 10, [](uint32_t) { return 0.005; }), 32);
  const Rows before = bench.rows_blocking();
  StepBlock stale = mcmc_block(40, 10);
  stale.epoch = 1;
  noise(bench, stale, 1);
  noise(bench, mcmc_block(44, 10), 0);
  EXPECT_TRUE(same_rows(before, bench.rows_blocking()));
}

}  // namespace
}  // namespace millrace::test
