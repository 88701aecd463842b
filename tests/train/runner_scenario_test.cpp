// The sticky gate's host side: replays are exact, storage grows in flight, and steady steps never
// wait.
#include "train/runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/worker_pool.h"
#include "train/runner_bench.h"

namespace millrace::test {
namespace {

constexpr uint32_t kSteps = 80;  // refinements, three SH degrees and three reorderings

// The state after kSteps with room for everything from the start.
const std::string& reference_hash() {
  static const std::string hash = [] {
    RunnerBench bench(tiny_options(kSteps));
    bench.run_blocking(kSteps).or_raise();
    EXPECT_EQ(bench.runner->replays(), 0u);
    EXPECT_GT(bench.rows_blocking(), bench.initial_rows) << "the run must refine";
    return bench.hash_blocking();
  }();
  return hash;
}

std::vector<uint32_t> steps_of(const std::vector<StepMetrics>& metrics) {
  std::vector<uint32_t> steps;
  for (const StepMetrics& m : metrics) steps.push_back(m.step);
  return steps;
}

std::vector<uint32_t> first_steps(uint32_t n) {
  std::vector<uint32_t> steps(n);
  std::iota(steps.begin(), steps.end(), 0u);
  return steps;
}

TEST(Replay, AForcedCapacityAtSeveralStepsGivesTheSameStateAndOneReplayEach) {
  TrainOptions options = tiny_options(kSteps);
  // The first step, a refinement's and a reordering's step, and the last one.
  options.test_capacity = {{1, 0}, {1, 20}, {1, 25}, {1, 50}, {1, kSteps - 1}};
  RunnerBench bench(options);
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
  EXPECT_EQ(bench.runner->replays(), 5u);
}

TEST(Replay, AForcedCapacityAtConsecutiveStepsGivesTheSameStateAndOneReplayEach) {
  TrainOptions options = tiny_options(kSteps);
  options.test_capacity = {{1, 19}, {1, 20}, {1, 21}, {1, 22}};
  RunnerBench bench(options);
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
  EXPECT_EQ(bench.runner->replays(), 4u);
}

TEST(Replay, EveryStepIsAcceptedOnceAndInOrder) {
  TrainOptions options = tiny_options(kSteps);
  options.test_capacity = {{1, 0}, {1, 20}, {1, 21}, {1, 79}};
  RunnerBench bench(options);
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_EQ(steps_of(bench.accepted), first_steps(kSteps));
}

TEST(Replay, RandomCapacitiesGiveTheSameStateForEverySeed) {
  uint64_t replays = 0;
  for (const uint64_t seed : {1ull, 2ull, 3ull, 4ull, 5ull}) {
    TrainOptions options = tiny_options(kSteps);
    options.seed = seed;
    RunnerBench roomy(options);
    ASSERT_TRUE(roomy.run_blocking(kSteps).ok());
    ASSERT_EQ(roomy.runner->replays(), 0u);
    options.test_capacity_random = 0.1;
    RunnerBench cut(options);
    ASSERT_TRUE(cut.run_blocking(kSteps).ok());
    EXPECT_EQ(cut.hash_blocking(), roomy.hash_blocking()) << "seed " << seed;
    EXPECT_EQ(steps_of(cut.accepted), first_steps(kSteps));
    replays += cut.runner->replays();
  }
  // A draw of exactly the need passes, and needs are known late: far from every draw closes the
  // gate.
  EXPECT_GE(replays, 10u);
}

TEST(Replay, RandomBackgroundsGiveTheSameState) {
  TrainOptions options = tiny_options(kSteps);
  options.bg_mode = "random";
  RunnerBench roomy(options);
  ASSERT_TRUE(roomy.run_blocking(kSteps).ok());
  const std::string hash = roomy.hash_blocking();
  EXPECT_NE(hash, reference_hash());
  options.test_capacity_random = 0.2;
  RunnerBench cut(options);
  ASSERT_TRUE(cut.run_blocking(kSteps).ok());
  EXPECT_GT(cut.runner->replays(), 0u);
  EXPECT_EQ(cut.hash_blocking(), hash);
}

TEST(Replay, StructureAndEdgesGiveTheSameState) {
  TrainOptions options = tiny_options(kSteps);
  options.thin_structure_weight = 0.5;
  options.gradient_loss_weight = 1.8;
  options.gradient_loss_start = 20;
  RunnerBench roomy(options);
  ASSERT_TRUE(roomy.run_blocking(kSteps).ok());
  const std::string hash = roomy.hash_blocking();
  EXPECT_NE(hash, reference_hash());
  options.test_capacity_random = 0.2;
  options.image_cache_bytes = 1;  // ridge maps are made again and again
  RunnerBench cut(options);
  ASSERT_TRUE(cut.run_blocking(kSteps).ok());
  EXPECT_GT(cut.runner->replays(), 0u);
  EXPECT_EQ(cut.hash_blocking(), hash);
}

// A background, and a crop box for a while.
void add_early_edits(RunnerBench& bench) {
  const CropBox box = crop_box_of_setting("-0.5,-0.5,-0.5,0.5,0.5,0.5").or_raise();
  bench.edits.add({.step = 21, .bg_color = std::array<float, 3>{1, 0.5f, 0}});
  bench.edits.add({.step = 18, .crop_box = std::optional<CropBox>(box)});
  bench.edits.add({.step = 30, .crop_box = std::optional<CropBox>()});
}

void add_edits(RunnerBench& bench) {
  add_early_edits(bench);
  bench.edits.add({.step = 50, .max_cap = bench.initial_rows + 3});
}

TEST(Replay, EditsTakeEffectAtTheirStepWhateverIsReplayed) {
  RunnerBench reference(tiny_options(kSteps));
  add_edits(reference);
  ASSERT_TRUE(reference.run_blocking(kSteps).ok());
  const std::string hash = reference.hash_blocking();
  EXPECT_NE(hash, reference_hash());
  uint64_t replays = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    TrainOptions options = tiny_options(kSteps);
    options.test_capacity = {{1, 20 + seed}, {1, 50}};
    options.test_capacity_random = 0.05 * seed;
    RunnerBench bench(options);
    // The second edit comes while its step is still to be recorded.
    add_early_edits(bench);
    ASSERT_TRUE(bench.run_blocking(40).ok());
    bench.edits.add({.step = 50, .max_cap = bench.initial_rows + 3});
    ASSERT_TRUE(bench.run_blocking(kSteps).ok());
    EXPECT_EQ(bench.hash_blocking(), hash);
    replays += bench.runner->replays();
  }
  EXPECT_GE(replays, 8u);
}

TEST(Replay, MasksAreThoseOfTheViewWhateverIsReplayed) {
  for (const char* mode : {"ignore", "segment"}) {
    TrainOptions options = tiny_options(40);
    options.mask_mode = mode;
    RunnerBench reference(options), plain(tiny_options(40));
    ASSERT_TRUE(reference.run_blocking(40).ok());
    ASSERT_TRUE(plain.run_blocking(40).ok());
    EXPECT_NE(reference.hash_blocking(), plain.hash_blocking()) << mode;
    options.test_capacity = {{1, 7}, {1, 21}};
    options.image_cache_bytes = uint64_t{6} * 4 * 64 * 48;  // not all stay on the device
    RunnerBench cut(options);
    ASSERT_TRUE(cut.run_blocking(40).ok());
    EXPECT_EQ(cut.runner->replays(), 2u);
    EXPECT_EQ(cut.hash_blocking(), reference.hash_blocking()) << mode;
  }
}

TEST(Pause, HappensOnceHoweverOftenItsStepIsReplayedAndChangesNothing) {
  TrainOptions options = tiny_options(kSteps);
  options.test_capacity = {{1, 28}, {1, 30}};
  RunnerBench bench(options);
  bench.edits.add({.step = 30, .pause_seconds = 0.01});
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
  uint64_t pauses = 0;
  for (const WaitRecord& row : bench.device.ledger().records()) {
    if (row.site == "trainer.pause") pauses += row.count;
  }
  EXPECT_EQ(pauses, 1u);
}

TEST(Pause, EndsWhenTheRunIsStopped) {
  RunnerBench bench(tiny_options(kSteps));
  bench.edits.add({.step = 3, .pause_seconds = 3600});
  WorkerPool worker(1);
  worker.post([&] {
    pause_worker(20);
    bench.stop = true;
  });
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_LE(bench.runner->next_step(), 4u);
}

TEST(Replay, StoppingAndGoingOnBetweenRandomCapacitiesGivesTheSameState) {
  TrainOptions options = tiny_options(kSteps);
  options.test_capacity_random = 0.3;
  RunnerBench bench(options);
  for (const uint32_t end : {1u, 2u, 21u, 22u, 50u, kSteps}) {
    ASSERT_TRUE(bench.run_blocking(end).ok());
    ASSERT_EQ(bench.runner->next_step(), end);
    ASSERT_EQ(steps_of(bench.accepted), first_steps(end));
  }
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
  EXPECT_GT(bench.runner->replays(), 0u);
}

TEST(Replay, AStepThatIsRefusedForEverEndsInATypedErrorThatNamesItsNeed) {
  RunnerBench bench(tiny_options(kSteps));
  ASSERT_TRUE(bench.run_blocking(7).ok());
  bench.device.refuse_every_frame = true;
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(ran.error().message.find("step 7 "), std::string::npos) << ran.error().message;
  EXPECT_LT(bench.runner->replays(), 20u);
}

TEST(Growth, TooFewInstancesAtFirstGiveTheSameState) {
  RunnerBench bench(tiny_options(kSteps), {.rows = 0, .instances = 1});
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
  EXPECT_GE(bench.runner->replays(), 1u);
  EXPECT_LE(bench.runner->replays(), 3u) << "growth must serve the frames to come too";
}

// Bytes for a part of what the fullest frame needs; its fullest tile alone takes more.
uint64_t a_tenth_of_the_need() {
  RunnerBench bench(tiny_options(kSteps));
  bench.run_blocking(kSteps).or_raise();
  return bench.runner->max_instances() / 10 * instance_bytes(true);
}

TEST(Bands, WithATenthOfTheInstancesTheStateIsTheSameAndNothingWaits) {
  TrainOptions options = tiny_options(kSteps);
  options.instance_budget = a_tenth_of_the_need();
  RunnerBench bench(options, {.rows = 0, .instances = 64});
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
  EXPECT_GT(bench.runner->most_bands(), 10u);
  EXPECT_LE(bench.state.workspace.instances.capacity * instance_bytes(true),
            options.instance_budget);
}

TEST(Bands, AndCapacitiesCutAtRandomGiveTheSameState) {
  TrainOptions options = tiny_options(kSteps);
  options.instance_budget = a_tenth_of_the_need();
  options.test_capacity_random = 0.1;
  RunnerBench bench(options, {.rows = 0, .instances = 64});
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
}

TEST(Bands, OneInstanceAtATimeIsEnough) {
  constexpr uint32_t kFew = 4;
  std::string hashes[2];
  for (const uint64_t budget : {0u, 1u}) {
    TrainOptions options = tiny_options(kFew);
    options.instance_budget = budget;
    RunnerBench bench(options, {.rows = 0, .instances = budget});
    ASSERT_TRUE(bench.run_blocking(kFew).ok());
    hashes[budget] = bench.hash_blocking();
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(Growth, RowsGrowInFlightToTheSameState) {
  RunnerBench bench(tiny_options(kSteps), {.rows = 1, .instances = 0});
  const uint64_t room = bench.state.model.row_capacity;
  ASSERT_LT(room, bench.initial_rows + kRowBlock);
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_GT(bench.state.model.row_capacity, room);
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
}

TEST(Growth, RowsFollowTheClosedFormUpToTheCap) {
  TrainOptions options = tiny_options(kSteps);
  RunnerBench free(options), capped(options, {.rows = 1, .instances = 1});
  ASSERT_TRUE(free.run_blocking(kSteps).ok());
  uint64_t n = free.initial_rows;
  for (const StepMetrics& m : free.accepted) {
    EXPECT_EQ(m.rows, n) << "step " << m.step;
    if (m.step > 5 && m.step % 10 == 0) n += n / 20;
  }
  EXPECT_EQ(free.rows_blocking(), n);
  capped.options.max_cap = capped.initial_rows + 30;
  ASSERT_TRUE(capped.run_blocking(kSteps).ok());
  EXPECT_EQ(capped.rows_blocking(), capped.initial_rows + 30);
}

TEST(Growth, RowsAndCapacitiesThatRunOutTogetherGiveTheSameState) {
  TrainOptions options = tiny_options(kSteps);
  options.test_capacity_random = 0.2;
  options.test_capacity = {{1, 10}, {1, 20}, {1, 30}};
  RunnerBench bench(options, {.rows = 1, .instances = 1});
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
}

TEST(Waits, AreForPacingAloneWithRefinementAndReordering) {
  RunnerBench bench(tiny_options(kSteps));
  const uint64_t before = bench.device.ledger().count_except_pacing();
  ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, {}).ok());
  EXPECT_EQ(bench.device.ledger().count_except_pacing(), before);
  for (const QueueEvent& event : bench.device.events) {
    if (event.kind == QueueEvent::kWait) {
      EXPECT_EQ(event.reason, WaitReason::Pacing);
    }
  }
  int n_pacing_sites = 0;
  for (const WaitRecord& row : bench.device.ledger().records()) {
    if (row.reason != WaitReason::Pacing) continue;
    ++n_pacing_sites;
    EXPECT_EQ(row.site, "trainer.pacing");
  }
  EXPECT_LE(n_pacing_sites, 1);
}

TEST(Waits, PacingIsForTheStepThreeBackAndNeverForANewerPoint) {
  TrainOptions options = tiny_options(kSteps);
  options.stop_refine = 0;
  options.morton_interval = 0;  // one submit per step
  RunnerBench bench(options);
  bench.device.events.clear();
  ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, {}).ok());
  std::vector<Point> submits;
  uint32_t n_waits = 0;
  for (const QueueEvent& event : bench.device.events) {
    if (event.kind == QueueEvent::kSubmit) {
      submits.push_back(event.point);
      continue;
    }
    ASSERT_GE(submits.size(), kRunAhead);
    EXPECT_EQ(event.point, submits[submits.size() - kRunAhead]);
    ++n_waits;
  }
  EXPECT_EQ(submits.size(), kSteps);
  EXPECT_EQ(n_waits, kSteps - kRunAhead);
}

TEST(Waits, PacingIsForNoNewerPointWithRefinementsAndReplays) {
  TrainOptions options = tiny_options(kSteps);
  options.test_capacity_random = 0.2;
  RunnerBench bench(options);
  bench.device.events.clear();
  ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, {}).ok());
  std::vector<Point> submits;
  for (const QueueEvent& event : bench.device.events) {
    if (event.kind == QueueEvent::kSubmit) {
      submits.push_back(event.point);
    } else {
      ASSERT_EQ(event.reason, WaitReason::Pacing);
      ASSERT_GE(submits.size(), kRunAhead);
      EXPECT_LE(event.point, submits[submits.size() - kRunAhead]);
    }
  }
}

TEST(Waits, ForANewerPointThanPacingAllowsCountWhateverTheyCallThemselves) {
  TrainOptions options = tiny_options(kSteps);
  options.device = "cpu:2,lazy";
  RunnerBench bench(options);
  ASSERT_TRUE(bench.runner->run_until_blocking(30, bench.stop, {}).ok());
  const uint64_t before = bench.device.ledger().count_except_pacing();
  const WaitSite early{WaitReason::Pacing, "test.early"};
  ASSERT_TRUE(bench.device.wait_blocking(bench.device.submit(), early).ok());
  EXPECT_EQ(bench.device.ledger().count_except_pacing(), before + 1);
  const WaitRecord row = bench.device.ledger().records().back();
  EXPECT_EQ(row.site, "test.early");
  EXPECT_EQ(row.reason, WaitReason::UserRead);
}

TEST(Stopping, TheStopFlagEndsTheRunAtAStepAndItCanGoOn) {
  RunnerBench bench(tiny_options(kSteps));
  const auto take = [&](const StepMetrics& metrics) {
    bench.accepted.push_back(metrics);
    if (metrics.step == 30) bench.stop = true;
  };
  ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, take).ok());
  ASSERT_TRUE(bench.runner->settle_blocking(take).ok());
  EXPECT_GE(bench.accepted.size(), 31u);
  EXPECT_LE(bench.accepted.size(), 31 + kRunAhead + 1);
  bench.stop = false;
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_EQ(steps_of(bench.accepted), first_steps(kSteps));
  EXPECT_EQ(bench.hash_blocking(), reference_hash());
}

TEST(Divergence, AbsurdRatesEndInATypedErrorOrAFiniteLoss) {
  for (const char* rate : {"means", "scales", "sh0", "opacity", "all"}) {
    SCOPED_TRACE(rate);
    const std::string name = rate;
    TrainOptions options = tiny_options(kSteps);
    const bool all = name == "all";
    if (all || name == "means") options.means_lr = 1e30;
    if (all || name == "scales") options.scaling_lr = 1e30;
    if (all || name == "sh0") options.sh0_lr = 1e30;
    if (all || name == "opacity") options.opacity_lr = 1e30;
    RunnerBench bench(options);
    const Result<void> ran = bench.run_blocking(kSteps);
    if (ran.ok()) {
      for (const StepMetrics& m : bench.accepted) ASSERT_TRUE(std::isfinite(m.loss)) << m.step;
    } else {
      EXPECT_EQ(ran.error().code, ErrorCode::Diverged) << ran.error().message;
    }
  }
}

}  // namespace
}  // namespace millrace::test
