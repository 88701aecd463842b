// The closed forms of the schedule against numbers worked out by hand, and the order of the views.
#include "train/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace millrace::test {
namespace {

constexpr SceneScale kScale = {2.5, 1.3};  // normaliser, scene scale

StepBlock block_at(const TrainOptions& options, uint32_t step) {
  return Schedule(options, kScale).block(transaction_id(step, TransactionKind::Step), 3, 5);
}

TEST(Schedule, TheFirstStepHasTheRatesOfTheAnchors) {
  const StepBlock block = block_at(TrainOptions(), 0);
  // Rates over 1 - beta1 = 0.1; the means' in units of the scene (1.3) times the normaliser (2.5).
  EXPECT_NEAR(block.rate_means, 1.6e-3 * 1.3 * 2.5, 1e-8);
  EXPECT_NEAR(block.rate_opacities, 0.5, 1e-6);
  EXPECT_NEAR(block.rate_scales, 5e-2, 1e-7);
  EXPECT_NEAR(block.rate_rotations, 1e-2, 1e-8);
  EXPECT_NEAR(block.rate_sh0, 2.5e-2, 1e-7);
  EXPECT_NEAR(block.rate_sh_rest, 2.5e-2 / 20, 1e-8);
  EXPECT_NEAR(block.inv_sqrt_bias2, 31.6227766, 1e-4);  // 1 / sqrt(0.001)
  EXPECT_NEAR(block.noise_scale, 1.6e-4 * 1.3 * 5e5 / 2.5, 1e-3);
  EXPECT_FLOAT_EQ(block.ssim_weight, 0.2f);
  EXPECT_FLOAT_EQ(block.opacity_reg, 0.01f);
  EXPECT_FLOAT_EQ(block.scale_reg, 0.016f);  // 0.04 / 2.5
  EXPECT_FLOAT_EQ(block.min_opacity, 0.005f);
  EXPECT_EQ(block.max_rows, 1000000u);
  EXPECT_EQ(block.transaction, transaction_id(0, TransactionKind::Step));
  EXPECT_EQ(block.epoch, 3u);
  EXPECT_EQ(block.view, 5u);
  EXPECT_EQ(block.seed, 42u);
  EXPECT_EQ(block.sh_degree, 0u);
  EXPECT_EQ(block.modes, 0u);
}

TEST(Schedule, TheEdgesCountFromTheirStartOnAndStructureAlways) {
  TrainOptions options;
  EXPECT_EQ(block_at(options, 5000).loss.edge_weight, 0.0f);
  EXPECT_EQ(block_at(options, 5000).loss.structure_weight, 0.0f);
  options.thin_structure_weight = 0.5;
  options.densify_structure_weight = 1;
  options.gradient_loss_weight = 1.8;
  EXPECT_EQ(block_at(options, 1999).loss.edge_weight, 0.0f);
  EXPECT_EQ(block_at(options, 2000).loss.edge_weight, 1.8f);
  EXPECT_EQ(block_at(options, 0).loss.structure_weight, 0.5f);
  EXPECT_EQ(block_at(options, 0).loss.densify_structure_weight, 1.0f);
}

TEST(Schedule, TheMeansRateFallsByAHundredOver30000Steps) {
  // Far from the start, bias correction is 1.
  EXPECT_NEAR(block_at(TrainOptions(), 30000).rate_means, 1.6e-6 * 1.3 * 2.5, 1e-11);
  EXPECT_NEAR(block_at(TrainOptions(), 15000).rate_means, 1.6e-5 * 1.3 * 2.5, 1e-10);
  EXPECT_NEAR(block_at(TrainOptions(), 15000).noise_scale, 1.6e-5 * 1.3 * 5e5 / 2.5, 1e-4);
  TrainOptions longer;
  longer.steps_scaler = 2;
  EXPECT_NEAR(block_at(longer, 30000).rate_means, 1.6e-5 * 1.3 * 2.5, 1e-10);
}

TEST(Schedule, TheWeightOfTheScaleStaysOrFallsToNothing) {
  TrainOptions options;
  options.iterations = 100;
  EXPECT_FLOAT_EQ(block_at(options, 99).scale_reg, 0.016f);
  options.scale_reg_power = 0.4;
  EXPECT_NEAR(block_at(options, 49).scale_reg, 0.016 * 1.4 * std::pow(0.5, 0.4), 1e-8);
  EXPECT_EQ(block_at(options, 99).scale_reg, 0.0f);
  double sum = 0;
  for (uint32_t step = 0; step < 100; ++step) sum += block_at(options, step).scale_reg;
  EXPECT_NEAR(sum / 100, 0.016, 5e-4) << "the mean is that of the constant weight";
}

TEST(Schedule, TheMipFilterHoldsForEveryTransaction) {
  TrainOptions options;
  options.mip_filter = true;
  options.bg_mode = "random";
  EXPECT_EQ(block_at(options, 5).modes, kModeMipFilter | kModeRandomBackground);
  const Schedule schedule(options, kScale);
  EXPECT_EQ(schedule.block(transaction_id(5, TransactionKind::Eval), 0, 0).modes, kModeMipFilter);
}

TEST(Schedule, TheRegularisersAreOffUnlessAskedFor) {
  TrainOptions options;
  const MrnfStep off = block_at(options, 3).mrnf;
  EXPECT_EQ(off.erank_reg, 0.0f);
  EXPECT_EQ(off.dc_reg, 0.0f);
  EXPECT_EQ(off.sh_rest_reg, 0.0f);
  options.erank_reg = 0.1;
  options.dc_reg = 0.2;
  options.sh_rest_reg = 0.3;
  const MrnfStep on = block_at(options, 3).mrnf;
  EXPECT_EQ(on.erank_reg, 0.1f);
  EXPECT_EQ(on.dc_reg, 0.2f);
  EXPECT_EQ(on.sh_rest_reg, 0.3f);
}

TEST(Schedule, BiasCorrectionFollowsTheStep) {
  // 1 - 0.9^10 = 0.6513215599; 1 - 0.999^10 = 0.009955119790.
  const StepBlock block = block_at(TrainOptions(), 9);
  EXPECT_NEAR(block.rate_opacities, 0.05 / 0.6513215599, 1e-7);
  EXPECT_NEAR(block.inv_sqrt_bias2, 1 / std::sqrt(0.009955119790), 1e-5);
}

TEST(Schedule, RefinesEvery100StepsBetween500And25000) {
  const TrainOptions options;
  const Schedule schedule(options, kScale);
  std::vector<uint32_t> steps;
  for (uint32_t step = 0; step < 30000; ++step) {
    if (schedule.refines_after(step)) steps.push_back(step);
  }
  ASSERT_EQ(steps.size(), 244u);  // 600, 700, ... 24900
  EXPECT_EQ(steps.front(), 600u);
  EXPECT_EQ(steps[1], 700u);
  EXPECT_EQ(steps.back(), 24900u);
}

TEST(Schedule, ReordersAtTheIntervalAndNeverAtStep0) {
  TrainOptions options;
  options.morton_interval = 10;
  EXPECT_FALSE(Schedule(options, kScale).reorders_after(0));
  EXPECT_FALSE(Schedule(options, kScale).reorders_after(9));
  EXPECT_TRUE(Schedule(options, kScale).reorders_after(10));
  EXPECT_TRUE(Schedule(options, kScale).reorders_after(20));
  options.morton_interval = 0;
  EXPECT_FALSE(Schedule(options, kScale).reorders_after(10));
}

TEST(Schedule, TransactionsOfAStepAreStepThenRefineThenReorder) {
  TrainOptions options;
  options.start_refine = 5;
  options.refine_every = 10;
  options.morton_interval = 15;
  const Schedule schedule(options, kScale);
  const auto id = [](uint32_t step, TransactionKind kind) { return transaction_id(step, kind); };
  EXPECT_EQ(schedule.next(id(9, TransactionKind::Step)), id(10, TransactionKind::Step));
  EXPECT_EQ(schedule.next(id(10, TransactionKind::Step)), id(10, TransactionKind::Refine));
  EXPECT_EQ(schedule.next(id(10, TransactionKind::Refine)), id(11, TransactionKind::Step));
  EXPECT_EQ(schedule.next(id(15, TransactionKind::Step)), id(15, TransactionKind::Reorder));
  EXPECT_EQ(schedule.next(id(15, TransactionKind::Reorder)), id(16, TransactionKind::Step));
  EXPECT_EQ(schedule.next(id(30, TransactionKind::Step)), id(30, TransactionKind::Refine));
  EXPECT_EQ(schedule.next(id(30, TransactionKind::Refine)), id(30, TransactionKind::Reorder));
  EXPECT_EQ(schedule.next(id(30, TransactionKind::Reorder)), id(31, TransactionKind::Step));
}

TEST(Schedule, SnapshotsAndThenEveryViewOfAnEvaluationComeBeforeTheirStep) {
  TrainOptions options;
  options.morton_interval = 10;
  Schedule schedule(options, kScale);
  schedule.plan_outputs({.saves = {0, 11}, .evals = {11, 12}, .n_eval_views = 3});
  std::vector<uint64_t> ids = {schedule.first(0)};
  while (step_of(ids.back()) < 13) ids.push_back(schedule.next(ids.back()));
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  using Kind = TransactionKind;
  const std::vector<uint64_t> expected = {
      transaction_id(10, Kind::Reorder), transaction_id(11, Kind::Snapshot),
      transaction_id(11, Kind::Eval, 0), transaction_id(11, Kind::Eval, 1),
      transaction_id(11, Kind::Eval, 2), transaction_id(11, Kind::Step),
      transaction_id(12, Kind::Eval, 0), transaction_id(12, Kind::Eval, 1),
      transaction_id(12, Kind::Eval, 2), transaction_id(12, Kind::Step),
      transaction_id(13, Kind::Step)};
  EXPECT_TRUE(std::equal(expected.rbegin(), expected.rend(), ids.rbegin()));
  EXPECT_EQ(ids[0], transaction_id(0, Kind::Snapshot));
  EXPECT_EQ(ids[1], transaction_id(0, Kind::Step));
}

TEST(Schedule, ATransactionsNumberHoldsItsStepKindAndView) {
  const uint64_t id = transaction_id(0xFFFFFFFE, TransactionKind::Eval, 0xABCDEF);
  EXPECT_EQ(step_of(id), 0xFFFFFFFEu);
  EXPECT_EQ(kind_of(id), TransactionKind::Eval);
  EXPECT_EQ(index_of(id), 0xABCDEFu);
}

TEST(Schedule, AnEvaluationHasThePlainBackgroundAndTheTrainedDegree) {
  TrainOptions options;
  options.bg_color = {0.25f, 0.5f, 0.75f};
  for (const char* mode : {"modulation", "random"}) {
    options.bg_mode = mode;
    const Schedule schedule(options, kScale);
    const StepBlock block = schedule.block(transaction_id(1000, TransactionKind::Eval, 2), 3, 7);
    EXPECT_EQ(block.background[1], 0.5f);
    EXPECT_EQ(block.modes, 0u);
    EXPECT_EQ(block.view, 7u);
    EXPECT_EQ(block.sh_degree, 0u) << "step 999 still trained degree 0";
    EXPECT_EQ(schedule.block(transaction_id(1001, TransactionKind::Eval), 3, 7).sh_degree, 1u);
  }
}

TEST(Schedule, TheShDegreeRisesByOneEachIntervalUpToTheLargest) {
  TrainOptions options;
  const Schedule schedule(options, kScale);
  EXPECT_EQ(schedule.sh_degree(0), 0u);
  EXPECT_EQ(schedule.sh_degree(999), 0u);
  EXPECT_EQ(schedule.sh_degree(1000), 1u);
  EXPECT_EQ(schedule.sh_degree(2999), 2u);
  EXPECT_EQ(schedule.sh_degree(3000), 3u);
  EXPECT_EQ(schedule.sh_degree(29999), 3u);
  TrainOptions flat;
  flat.sh_degree = 1;
  EXPECT_EQ(Schedule(flat, kScale).sh_degree(29999), 1u);
}

TEST(Schedule, ARandomBackgroundIsAModeOfTheBlock) {
  TrainOptions options;
  options.bg_mode = "random";
  options.bg_color = {0.1f, 0.2f, 0.3f};
  const StepBlock block = block_at(options, 0);
  EXPECT_EQ(block.modes, kModeRandomBackground);
  EXPECT_EQ(block.background[2], 0.3f);
}

std::vector<uint32_t> pass_of(ViewSampler& sampler, uint32_t pass, uint32_t n_views) {
  std::vector<uint32_t> views;
  for (uint32_t i = 0; i < n_views; ++i) views.push_back(sampler.view_of(pass * n_views + i));
  return views;
}

TEST(ViewSampler, ShowsEveryViewOnceInEachPassInAFreshOrder) {
  constexpr uint32_t kViews = 23;
  ViewSampler sampler(42, kViews);
  std::vector<uint32_t> all(kViews);
  std::iota(all.begin(), all.end(), 0u);
  std::set<std::vector<uint32_t>> orders;
  for (uint32_t pass = 0; pass < 20; ++pass) {
    std::vector<uint32_t> views = pass_of(sampler, pass, kViews);
    orders.insert(views);
    std::ranges::sort(views);
    EXPECT_EQ(views, all);
  }
  EXPECT_EQ(orders.size(), 20u);
}

TEST(ViewSampler, IsAFunctionOfSeedAndStepInAnyOrderOfTheCalls) {
  constexpr uint32_t kViews = 7, kSteps = 70;
  ViewSampler forward(1, kViews), other(2, kViews), backward(1, kViews);
  std::vector<uint32_t> a(kSteps), b(kSteps), c(kSteps);
  for (uint32_t step = 0; step < kSteps; ++step) a[step] = forward.view_of(step);
  for (uint32_t step = 0; step < kSteps; ++step) b[step] = other.view_of(step);
  for (uint32_t step = kSteps; step-- > 0;) c[step] = backward.view_of(step);
  EXPECT_EQ(a, c);
  EXPECT_NE(a, b);
}

TEST(ViewSampler, EveryViewComesFirstAboutEquallyOften) {
  constexpr uint32_t kViews = 5, kPasses = 2000;
  ViewSampler sampler(42, kViews);
  std::vector<double> first(kViews);
  for (uint32_t pass = 0; pass < kPasses; ++pass) ++first[sampler.view_of(pass * kViews)];
  double chi2 = 0;
  for (const double n : first) chi2 += (n - 400) * (n - 400) / 400;
  EXPECT_LT(chi2, 18.5) << "99.9 % of chi-square with 4 degrees of freedom";
}

TEST(ViewSampler, TakesASingleView) {
  ViewSampler sampler(42, 1);
  for (const uint32_t step : {0u, 1u, 1000u}) EXPECT_EQ(sampler.view_of(step), 0u);
}

}  // namespace
}  // namespace millrace::test
