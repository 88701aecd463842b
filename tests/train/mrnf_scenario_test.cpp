// Scenario: training with MRNF is a function of the seed, whatever is refused, and shows no row
// without a Gaussian.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "io/ply.h"
#include "train/runner_bench.h"
#include "train/strategy_options.h"

namespace millrace::test {
namespace {

constexpr uint32_t kSteps = 60;

// Rows that grow, and rows that die: fading is fast.
TrainOptions lively_options() {
  TrainOptions options = tiny_mrnf_options(kSteps);
  options.growth_grad_threshold = 0;
  options.grow_fraction = 0.1;
  options.opacity_decay = 0.2;
  return options;
}

const std::string& reference_hash() {
  static const std::string hash = [] {
    RunnerBench bench(lively_options());
    bench.run_blocking(kSteps).or_raise();
    return bench.hash_blocking();
  }();
  return hash;
}

Control control_blocking(RunnerBench& bench) {
  const Ticket control = read_later(bench.state.model.control);
  bench.device.wait_blocking(bench.device.submit(), {WaitReason::Test, "test"}).or_raise();
  return control.as<Control>();
}

TEST(MrnfTraining, GrowsRemovesRowsAndMeasuresTheScene) {
  RunnerBench bench(lively_options());
  bench.run_blocking(kSteps).or_raise();
  const Control control = control_blocking(bench);
  EXPECT_EQ(bench.runner->replays(), 0u);
  EXPECT_GT(control.counts.dead, 0u);
  EXPECT_GT(control.counts.born, 0u);
  EXPECT_GT(control.counts.candidates, 0u);
  EXPECT_EQ(control.bounds.valid, 1u);
  EXPECT_GT(control.bounds.median_size, 0);
  EXPECT_GT(control.bounds.hull_radius, 0);
  EXPECT_EQ(control.metrics.rows, control.counts.rows - control.counts.free);
}

TEST(MrnfTraining, LowersTheLoss) {
  RunnerBench bench(tiny_mrnf_options(kSteps));
  bench.run_blocking(kSteps).or_raise();
  const auto mean_of = [&](size_t begin) {
    double sum = 0;
    for (size_t i = begin; i < begin + 10; ++i) sum += double{bench.accepted[i].loss} / 10;
    return sum;
  };
  EXPECT_LT(mean_of(kSteps - 10), 0.95 * mean_of(0));
}

TEST(MrnfReplay, RandomCapacitiesGiveTheSameStateForEverySeed) {
  uint64_t replays = 0;
  for (const uint64_t seed : {1ull, 2ull, 3ull}) {
    TrainOptions options = lively_options();
    options.seed = seed;
    RunnerBench roomy(options);
    ASSERT_TRUE(roomy.run_blocking(kSteps).ok());
    options.test_capacity_random = 0.15;
    RunnerBench cut(options);
    ASSERT_TRUE(cut.run_blocking(kSteps).ok());
    EXPECT_EQ(cut.hash_blocking(), roomy.hash_blocking()) << "seed " << seed;
    replays += cut.runner->replays();
  }
  EXPECT_GE(replays, 5u);
}

TEST(MrnfReplay, RowsThatRunOutInFlightEndInTheSameState) {
  Room room;
  room.rows = 1;  // those to begin with
  RunnerBench tight(lively_options(), room);
  ASSERT_TRUE(tight.run_blocking(kSteps).ok());
  EXPECT_GT(control_blocking(tight).counts.rows, tight.initial_rows);
  EXPECT_EQ(tight.hash_blocking(), reference_hash());
}

TEST(MrnfTraining, EndsInTheSameStateForAnyNumberOfThreads) {
  for (const int threads : {1, 3}) {
    TrainOptions options = lively_options();
    options.threads = threads;
    RunnerBench bench(options);
    ASSERT_TRUE(bench.run_blocking(kSteps).ok());
    EXPECT_EQ(bench.hash_blocking(), reference_hash()) << threads;
  }
}

TEST(MrnfTraining, ShowsNoRowWithoutAGaussian) {
  TrainOptions options = lively_options();
  const uint64_t uncapped = train_or_fail(options).gaussians;
  // From here on removed rows are not replaced: the cap leaves no room.
  options.commands = (scratch_folder() / "cap.jsonl").string();
  std::ofstream(options.commands) << "{\"step\": 25, \"max_cap\": 10}\n";
  const TrainSummary summary = train_or_fail(options);
  const auto report = nlohmann::json::parse(read_text_file(summary.report).or_raise());
  EXPECT_EQ(report["gaussians"], summary.gaussians);
  EXPECT_LT(summary.gaussians, uncapped) << "none was removed";
  const GaussianCloud cloud = read_gaussian_ply(summary.ply).or_raise();
  EXPECT_EQ(cloud.count(), summary.gaussians);
  for (uint64_t row = 0; row < cloud.count(); ++row) {
    const float* q = cloud.rotations.data() + 4 * row;
    EXPECT_TRUE(q[0] != 0 || q[1] != 0 || q[2] != 0 || q[3] != 0) << row;
  }
}

TEST(MrnfSchedule, HasStagesAndRatesOfTheRunsLength) {
  TrainOptions given;
  use_strategy(given, "lfs");
  given.iterations = 6000;
  given.max_cap = 4000000;
  const TrainOptions options = checked_options(given).or_raise();
  EXPECT_EQ(options.strategy, "mrnf");
  EXPECT_EQ(options.stop_refine, 5700u);
  EXPECT_EQ(options.grow_until, 3000u);
  EXPECT_NEAR(options.sh0_lr, 0.0025, 1e-12);
  EXPECT_NEAR(options.grow_fraction, 0.0758 + 0.0442 * std::log(4) / std::log(5), 1e-12);
  const Schedule schedule(options, SceneScale{2, 1.1});
  const auto block = [&](uint32_t step) {
    return schedule.block(transaction_id(step, TransactionKind::Step), 0, 0);
  };
  // Beyond 15,000 updates bias corrections would be 1; here they are divided out.
  const auto rate = [&](float value, uint32_t step) {
    return value * (1 - std::pow(0.9, step + 1.0));
  };
  EXPECT_NEAR(rate(block(0).rate_means, 0), 2.17871e-5, 1e-10);
  EXPECT_NEAR(rate(block(6000).rate_means, 6000), 2e-7, 1e-12);
  EXPECT_NEAR(rate(block(6000).rate_scales, 6000), 0.005, 1e-8);
  EXPECT_NEAR(rate(block(3000).rate_opacities, 3000), 0.012, 1e-8);
  EXPECT_NEAR(rate(block(4500).rate_opacities, 4500), 0.012 * std::sqrt(0.3), 1e-8);
  EXPECT_NEAR(rate(block(6000).rate_sh0, 6000), 0.0025 * 0.3, 1e-8);
  EXPECT_NEAR(block(2999).mrnf.opacity_decay, 0.002, 1e-8);
  EXPECT_NEAR(block(2999).noise_scale, 50 * rate(block(2999).rate_means, 2999), 1e-9);
  EXPECT_TRUE(block(2999).mrnf.modes & kMrnfGrows);
  EXPECT_FALSE(block(3000).mrnf.modes & kMrnfGrows);
  EXPECT_EQ(block(2999).mrnf.screen_share_limit, 0);
  EXPECT_NEAR(block(3000).mrnf.screen_share_limit, 0.586511, 1e-6);
  EXPECT_TRUE(schedule.refines_after(163));
  EXPECT_FALSE(schedule.measures_after(163));
  EXPECT_TRUE(schedule.measures_after(815));
  EXPECT_TRUE(block(815).mrnf.modes & kMrnfBounds);
  EXPECT_FALSE(block(5700).mrnf.modes & kMrnfNoise);
}

TEST(MrnfOptions, ExplicitSettingsWinAndTheEffectiveOnesAreShown) {
  TrainOptions options;
  options.refine_every = 7;
  use_strategy(options, "mcmc");
  EXPECT_EQ(options.refine_every, 7u) << "nothing changes where the strategy stays";
  const TrainOptions read =
      options_from_json("{\"refine_every\": 40, \"strategy\": \"mnrf\"}", "my.json", TrainOptions{})
          .or_raise();
  EXPECT_EQ(read.strategy, "mrnf");
  EXPECT_EQ(read.refine_every, 40u);
  EXPECT_EQ(read.lambda_dssim, 0.22);
  const auto json = nlohmann::json::parse(options_to_json(resolved_options(read)));
  EXPECT_EQ(json["stop_refine"], 28500);
  EXPECT_EQ(json["grow_until"], 15000);
  EXPECT_NEAR(json["sh0_lr"].get<double>(), 0.005 * std::sqrt(0.2), 1e-12);
  TrainOptions back = read;
  use_strategy(back, "mcmc");
  EXPECT_EQ(options_to_json(back), options_to_json(TrainOptions{}));
}

}  // namespace
}  // namespace millrace::test
