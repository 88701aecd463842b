// What counts as steady: steps from 20 on, without pauses and replays.
#include "train/run_meter.h"

#include <gtest/gtest.h>

#include "train/runner_bench.h"

namespace millrace::test {
namespace {

struct Bench {
  RecordingDevice device{open_device("cpu:1").or_raise()};
  RunMeter meter{device};

  // A wait of (almost) no time, as the ledger sees it.
  void wait_for_nothing(WaitReason reason) {
    std::mutex mutex;
    std::condition_variable changed;
    std::unique_lock lock(mutex);
    device.ledger().wait_for_blocking(lock, changed, [] { return false; },
                                      std::chrono::milliseconds(0), {reason, "test.wait"});
  }
  void steps(uint32_t begin, uint32_t end) {
    for (uint32_t step = begin; step < end; ++step) meter.step(step);
  }
};

TEST(RunMeter, WaitsBeforeStep20DoNotCount) {
  Bench bench;
  bench.meter.resume();
  bench.steps(0, 10);
  bench.wait_for_nothing(WaitReason::Decode);
  bench.wait_for_nothing(WaitReason::Pacing);
  bench.steps(10, 120);
  bench.meter.pause();
  EXPECT_EQ(bench.meter.steady_steps(), 100u);
  EXPECT_EQ(bench.meter.steady_waits_per_step(), 0);
  EXPECT_EQ(bench.meter.pacing_per_step(), 0);
}

TEST(RunMeter, WaitsFromStep20OnCountPerStepWithPacingApart) {
  Bench bench;
  bench.meter.resume();
  bench.steps(0, 50);
  for (int i = 0; i < 3; ++i) bench.wait_for_nothing(WaitReason::Decode);
  for (int i = 0; i < 50; ++i) bench.wait_for_nothing(WaitReason::Pacing);
  bench.steps(50, 120);
  bench.meter.pause();
  EXPECT_DOUBLE_EQ(bench.meter.steady_waits_per_step(), 0.03);
  EXPECT_DOUBLE_EQ(bench.meter.pacing_per_step(), 0.5);
}

TEST(RunMeter, WaitsWhilePausedDoNotCount) {
  Bench bench;
  bench.meter.resume();
  bench.steps(0, 70);
  bench.meter.pause();
  bench.wait_for_nothing(WaitReason::UserRead);
  bench.meter.resume();
  bench.steps(70, 120);
  bench.meter.pause();
  EXPECT_EQ(bench.meter.steady_steps(), 100u);
  EXPECT_EQ(bench.meter.steady_waits_per_step(), 0);
}

TEST(RunMeter, WaitsOfAReplayDoNotCount) {
  Bench bench;
  bench.meter.resume();
  bench.steps(0, 70);
  bench.wait_for_nothing(WaitReason::Replay);
  bench.meter.replayed();
  bench.steps(70, 120);
  bench.meter.pause();
  EXPECT_EQ(bench.meter.steady_waits_per_step(), 0);
  EXPECT_EQ(bench.meter.steady_steps(), 99u) << "the replayed step counts no more than its time";
}

TEST(RunMeter, WaitsBeforeTheStepThatAReplayFollowsStillCount) {
  Bench bench;
  bench.meter.resume();
  bench.steps(0, 60);
  for (int i = 0; i < 5; ++i) bench.wait_for_nothing(WaitReason::Decode);
  bench.steps(60, 70);
  bench.wait_for_nothing(WaitReason::Replay);
  bench.meter.leave_out();
  bench.wait_for_nothing(WaitReason::UserRead);
  bench.meter.leave_out();  // no step came in between
  bench.steps(70, 120);
  bench.meter.pause();
  EXPECT_DOUBLE_EQ(bench.meter.steady_waits_per_step(), 0.05);
}

TEST(RunMeter, SaysNothingOfARunWithoutSteadySteps) {
  Bench bench;
  bench.meter.resume();
  bench.steps(0, 19);
  bench.meter.pause();
  EXPECT_EQ(bench.meter.steady_steps(), 0u);
  EXPECT_EQ(bench.meter.steps_per_second(), 0);
  EXPECT_EQ(bench.meter.step_ms(), RunMeter::StepMs{});
  EXPECT_EQ(why_slow(bench.meter.figures()).verdict, SlowVerdict::Unknown);
}

TEST(RunMeter, FiguresKeepDecodePacingAndOtherWaitsApart) {
  Bench bench;
  bench.meter.resume();
  bench.steps(0, 50);
  bench.wait_for_nothing(WaitReason::Decode);
  for (int i = 0; i < 2; ++i) bench.wait_for_nothing(WaitReason::Pacing);
  for (int i = 0; i < 3; ++i) bench.wait_for_nothing(WaitReason::UserRead);
  bench.steps(50, 120);
  bench.meter.pause();
  const SlowFigures figures = bench.meter.figures();
  EXPECT_EQ(figures.n_steps, 100u);
  EXPECT_EQ(figures.n_decode_waits, 1u);
  EXPECT_EQ(figures.n_pacing_waits, 2u);
  EXPECT_EQ(figures.n_waits, 3u);
  EXPECT_EQ(figures.top_site, "test.wait");
  EXPECT_EQ(figures.top_reason, "UserRead");
  EXPECT_EQ(figures.top_count, 3u);
  EXPECT_GT(figures.wait_seconds, 0);
  EXPECT_GE(figures.seconds, figures.wait_seconds + figures.decode_seconds);
}

TEST(RunMeter, ASiteThatWaitedOnlyBeforeStep20IsNotNamed) {
  Bench bench;
  bench.meter.resume();
  bench.wait_for_nothing(WaitReason::UserRead);
  bench.steps(0, 100);
  bench.meter.pause();
  EXPECT_EQ(bench.meter.figures().n_waits, 0u);
  EXPECT_EQ(bench.meter.figures().top_site, "");
}

}  // namespace
}  // namespace millrace::test
