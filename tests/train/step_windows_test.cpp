// The windows of a run: equal parts of its steps, time and waits only while running.
#include "train/step_windows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "train/runner_bench.h"

namespace millrace::test {
namespace {

struct Windows {
  explicit Windows(uint32_t n_steps) : windows(device, n_steps) {}

  void steps(uint32_t begin, uint32_t end) {
    for (uint32_t step = begin; step < end; ++step) {
      StepMetrics metrics = {};
      metrics.step = step;
      metrics.rows = step;
      metrics.instances = 10 * step;
      metrics.loss = static_cast<float>(step);
      windows.step(metrics);
    }
  }
  void wait_for_nothing(WaitReason reason) {
    std::mutex mutex;
    std::condition_variable changed;
    std::unique_lock lock(mutex);
    device.ledger().wait_for_blocking(lock, changed, [] { return false; },
                                      std::chrono::milliseconds(0), {reason, "test.wait"});
  }

  RecordingDevice device{open_device("cpu:1").or_raise()};
  StepWindows windows;
};

TEST(StepWindows, TenOfThemCoverTheStepsWithTheirMeans) {
  Windows run(105);
  run.windows.resume();
  run.steps(0, 105);
  run.windows.pause();
  const std::vector<StepWindow> windows = run.windows.windows();
  ASSERT_EQ(windows.size(), 10u);
  uint32_t begin = 0;
  for (const StepWindow& window : windows) {
    EXPECT_EQ(window.step_begin, begin);
    EXPECT_DOUBLE_EQ(window.gaussians, (window.step_begin + window.step_end - 1) / 2.0);
    EXPECT_DOUBLE_EQ(window.instances, 10 * window.gaussians);
    EXPECT_GE(window.ms_per_step, 0);
    EXPECT_EQ(window.waits_per_step, 0);
    begin = window.step_end;
  }
  EXPECT_EQ(begin, 105u);
}

TEST(StepWindows, AWaitCountsInItsWindowAlone) {
  Windows run(100);
  run.windows.resume();
  run.steps(0, 34);
  run.wait_for_nothing(WaitReason::Decode);
  run.wait_for_nothing(WaitReason::Pacing);
  run.steps(34, 100);
  run.windows.pause();
  const std::vector<StepWindow> windows = run.windows.windows();
  for (size_t i = 0; i < windows.size(); ++i) {
    EXPECT_DOUBLE_EQ(windows[i].waits_per_step, i == 3 ? 0.1 : 0) << i;
  }
}

TEST(StepWindows, WhatHappensWhilePausedIsNoTimeAndNoWait) {
  Windows run(100);
  run.windows.resume();
  run.steps(0, 5);
  run.windows.pause();
  run.steps(5, 10);  // the queue's last ones, accepted while settling
  run.wait_for_nothing(WaitReason::UserRead);
  run.windows.resume();
  run.steps(10, 20);
  run.windows.pause();
  const std::vector<StepWindow> windows = run.windows.windows();
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].waits_per_step, 0);
  EXPECT_EQ(windows[1].waits_per_step, 0);
  EXPECT_DOUBLE_EQ(windows[0].gaussians, 4.5) << "sizes count all the same";
}

TEST(StepWindows, WhatIsLeftOutTakesNothingAwayFromTheStepsBefore) {
  Windows run(100);
  run.windows.resume();
  run.steps(0, 4);
  run.wait_for_nothing(WaitReason::Decode);
  run.steps(4, 5);
  run.wait_for_nothing(WaitReason::UserRead);
  run.windows.leave_out();
  run.steps(5, 20);
  run.windows.pause();
  const std::vector<StepWindow> windows = run.windows.windows();
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_DOUBLE_EQ(windows[0].waits_per_step, 0.1);
  EXPECT_EQ(windows[1].waits_per_step, 0);
}

TEST(StepWindows, AShortOrInterruptedRunHasFewerWindows) {
  Windows short_run(3);
  short_run.windows.resume();
  short_run.steps(0, 3);
  short_run.windows.pause();
  EXPECT_EQ(short_run.windows.windows().size(), 3u);

  Windows interrupted(100);
  EXPECT_TRUE(interrupted.windows.windows().empty());
  interrupted.windows.resume();
  interrupted.steps(0, 14);
  interrupted.windows.pause();
  const std::vector<StepWindow> windows = interrupted.windows.windows();
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[1].step_end, 14u);
}

TEST(StepWindows, ARunThatWasNeverTimedHasNullTimes) {
  Windows run(10);
  run.steps(0, 10);
  const nlohmann::ordered_json json = to_json(run.windows.windows());
  ASSERT_EQ(json.size(), 10u);
  EXPECT_TRUE(json[0]["ms_per_step"].is_null()) << json[0];
  for (const char* key : {"step_begin", "step_end", "gaussians", "instances"}) {
    EXPECT_TRUE(json[0][key].is_number()) << key;
  }
}

TEST(StepWindows, TheRecentLossIsOfTheLastFiftySteps) {
  Windows run(200);
  EXPECT_TRUE(std::isnan(run.windows.recent_loss()));
  run.steps(0, 3);
  EXPECT_DOUBLE_EQ(run.windows.recent_loss(), 1);
  run.steps(3, 100);
  EXPECT_DOUBLE_EQ(run.windows.recent_loss(), 74.5);
}

}  // namespace
}  // namespace millrace::test
