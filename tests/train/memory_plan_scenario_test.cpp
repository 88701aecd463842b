// Scenario: what a run takes on its device, against what its plan said before the first step.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "train/memory_plan.h"
#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

struct Measured {
  MemoryPlan plan;
  nlohmann::json report;
  uint64_t device_peak() const { return report["peak_bytes"]["device"].get<uint64_t>(); }
};

Measured run(const TrainOptions& options) {
  Measured measured;
  TrainObserver observer;
  bool has_begun = false;
  observer.planned = [&](const MemoryPlan& plan) {
    EXPECT_FALSE(has_begun);
    measured.plan = plan;
  };
  observer.images_loading = [&](uint32_t, uint32_t) { has_begun = true; };
  const TrainSummary summary = train_or_fail(options, observer);
  measured.report =
      nlohmann::json::parse(read_text_file(summary.report).or_raise(), nullptr, false);
  return measured;
}

// Growth from room for 65,536 rows to 80,000 in a few steps.
TrainOptions growing_options() {
  TrainOptions options = tiny_options(30);
  options.random = true;
  options.init_num_pts = 40000;
  options.max_cap = 80000;
  options.start_refine = 0;
  options.refine_every = 2;
  return options;
}

TEST(MemoryPlanOfARun, IsWhatTheDeviceThenReservesWithoutGrowth) {
  TrainOptions options = tiny_options(30);
  options.random = true;
  options.init_num_pts = options.max_cap = 30000;
  const Measured measured = run(options);
  EXPECT_LE(measured.device_peak(), measured.plan.device_bytes);
  EXPECT_GE(measured.device_peak(), measured.plan.device_bytes / 10 * 9);
}

TEST(MemoryPlanOfARun, IncludesGrowthToTheCap) {
  const Measured measured = run(growing_options());
  EXPECT_GT(measured.report["gaussians"].get<uint64_t>(), 65536u);
  EXPECT_LE(measured.device_peak(), measured.plan.device_bytes);
  EXPECT_GE(measured.device_peak(), measured.plan.device_bytes / 10 * 7);
  EXPECT_EQ(measured.report["memory_plan"]["device"], measured.plan.device_bytes);
}

TEST(MemoryPlanOfARun, HoldsItsBudgetsAndSaysWhatItGaveUp) {
  TrainOptions options = growing_options();
  const uint64_t wanted = run(options).plan.device_bytes;
  for (const int percent : {80, 50}) {
    options.vram_budget = wanted * static_cast<uint64_t>(percent) / 100;
    const Measured measured = run(options);
    EXPECT_LE(measured.plan.device_bytes, options.vram_budget) << percent;
    EXPECT_LE(measured.device_peak(), options.vram_budget) << percent;
    EXPECT_EQ(measured.report["memory_plan"]["gave_up"].empty(), measured.plan.gave_up.empty());
    EXPECT_LE(measured.report["gaussians"].get<uint64_t>(), measured.plan.max_cap) << percent;
    EXPECT_EQ(measured.report["steps"], 30) << percent;
  }
}

TEST(MemoryPlanOfARun, ThatGivesUpCacheAndRoomEndsInTheSameState) {
  TrainOptions options = tiny_options(40);
  const TrainSummary roomy = train_or_fail(options);
  options.image_cache_bytes = 4 * 3 * 64 * 48;
  options.instance_budget = 60 * 500;
  EXPECT_EQ(train_or_fail(options).state_sha256, roomy.state_sha256);
}

}  // namespace
}  // namespace millrace::test
