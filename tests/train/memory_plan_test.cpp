// plan_memory(): what it counts, which budgets hold, and what is given up in which order.
#include "train/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "splat/workspace.h"

namespace millrace::test {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kWidth = 800, kHeight = 600;
constexpr uint64_t kTarget = uint64_t{3} * kWidth * kHeight;

// A run on a cpu device of a capture that is not there: a plan reads no photograph.
struct Setting {
  TrainOptions options;
  std::vector<View> train_views = views(40), eval_views = views(5);
  std::vector<uint32_t> shown = {3000};
  uint64_t n_points = 50000;
  uint64_t available = 64ull << 30;
  bool shared = true;

  Setting() {
    options.iterations = 3000;
    options.max_cap = 200000;
  }
  static std::vector<View> views(size_t n) {
    std::vector<View> all(n);
    for (View& view : all) {
      view.image_path = "absent.jpg";
      view.camera.width = view.lens.width = view.file_width = kWidth;
      view.camera.height = view.lens.height = view.file_height = kHeight;
    }
    return all;
  }
  Result<MemoryPlan> plan() const {
    const Schedule schedule(options, SceneScale());
    PlanInputs inputs = {.options = options,
                         .schedule = schedule,
                         .train_views = train_views,
                         .eval_views = eval_views,
                         .n_points = n_points,
                         .saves = shown,
                         .evals = shown};
    inputs.shares_host_memory = inputs.stages_in_its_pool = shared;
    inputs.device_bytes = 64ull << 30;
    inputs.staging_bytes = 4 * kMiB;
    inputs.resident_bytes = 20 * kMiB;
    inputs.available_bytes = available;
    return plan_memory(inputs);
  }
  MemoryPlan plan_or_raise() const { return plan().or_raise(); }
};

uint64_t bytes_of(const MemoryPlan& plan, const std::string& name) {
  uint64_t bytes = 0;
  for (const MemoryLine& line : plan.lines) {
    if (line.name == name) bytes += line.host_bytes + line.device_bytes;
  }
  return bytes;
}

bool gave_up(const MemoryPlan& plan, const std::string& what) {
  return std::ranges::any_of(plan.gave_up,
                             [&](const std::string& line) { return line.starts_with(what); });
}

TEST(MemoryPlan, CountsModelMomentsPhotographsAndInstancesAtTheCap) {
  Setting setting;
  setting.options.iterations = 30000;  // enough refinements to reach the cap
  const MemoryPlan plan = setting.plan_or_raise();
  EXPECT_TRUE(plan.gave_up.empty());
  EXPECT_EQ(bytes_of(plan, "photographs"), 40 * kTarget);
  EXPECT_EQ(bytes_of(plan, "Gaussians"), 200000u * 59 * 4);
  EXPECT_EQ(bytes_of(plan, "Adam moments"), 2u * 200000 * 59 * 4);
  EXPECT_GE(bytes_of(plan, "instances"), 4 * 200000 * instance_bytes(true));
}

TEST(MemoryPlan, CountsNoGrowthThatTheRunDoesNotReach) {
  Setting setting;
  setting.options.iterations = 400;  // before the first refinement
  const uint64_t short_run = bytes_of(setting.plan_or_raise(), "Gaussians");
  EXPECT_EQ(short_run, 100000u / 32 * 32 * 59 * 4);  // twice the points, as every run begins
}

TEST(MemoryPlan, IsTheSumOfItsLines) {
  for (const bool shared : {true, false}) {
    Setting setting;
    setting.shared = shared;
    const MemoryPlan plan = setting.plan_or_raise();
    uint64_t host = 0, device = 0;
    for (const MemoryLine& line : plan.lines) {
      host += line.host_bytes;
      device += line.device_bytes;
    }
    EXPECT_EQ(host, plan.host_bytes);
    EXPECT_EQ(device, plan.device_bytes);
    EXPECT_EQ(plan.ram_bytes(), shared ? host + device : host);
  }
}

// The budgets of a plan that is cut to `share` of what the run would like.
MemoryPlan cut(Setting setting, double share) {
  const auto wanted = static_cast<double>(setting.plan_or_raise().ram_bytes());
  setting.options.ram_budget = static_cast<uint64_t>(share * wanted);
  return setting.plan_or_raise();
}

TEST(MemoryPlan, ThatIsCutGivesUpCacheThenInstancesThenGaussiansAndNoMoreThanItMust) {
  Setting setting;
  setting.options.iterations = 30000;
  const MemoryPlan whole = setting.plan_or_raise();
  for (int percent = 95; percent >= 40; percent -= 5) {
    const MemoryPlan plan = cut(setting, percent / 100.0);
    EXPECT_LE(plan.ram_bytes(), plan.ram_budget) << percent;
    EXPECT_GT(plan.ram_bytes(), plan.ram_budget * 8 / 10) << percent;
    EXPECT_FALSE(plan.gave_up.empty()) << percent;
    const bool cache = plan.image_cache_bytes < whole.image_cache_bytes;
    EXPECT_EQ(cache, gave_up(plan, "photograph cache")) << percent;
    const bool bands = gave_up(plan, "instances"), rows = gave_up(plan, "Gaussians");
    EXPECT_TRUE(cache || !bands) << percent;
    EXPECT_TRUE(bands || !rows) << percent;
    EXPECT_EQ(rows, plan.max_cap < setting.options.max_cap) << percent;
    EXPECT_EQ(bands, bytes_of(plan, "bands") > 0) << percent;
  }
}

// All rows from the beginning, so that nothing is gained by making room for them at once.
Setting full_setting() {
  Setting setting;
  setting.n_points = setting.options.max_cap;
  setting.train_views = Setting::views(100);
  return setting;
}

TEST(MemoryPlan, MakesRoomForAllRowsAtOnceBeforeItGivesUpAnything) {
  Setting setting;
  const MemoryPlan whole = setting.plan_or_raise();
  const MemoryPlan plan = cut(setting, 0.9);
  EXPECT_TRUE(plan.gave_up.empty());
  EXPECT_GT(plan.row_capacity, whole.row_capacity);
  EXPECT_EQ(plan.max_cap, whole.max_cap);
}

TEST(MemoryPlan, GivesUpCacheFirst) {
  const MemoryPlan plan = cut(full_setting(), 0.9);
  EXPECT_TRUE(gave_up(plan, "photograph cache"));
  EXPECT_EQ(plan.gave_up.size(), 1u);
  EXPECT_LT(bytes_of(plan, "photographs"), 100 * kTarget);
  EXPECT_EQ(plan.max_cap, 200000u);
}

TEST(MemoryPlan, GivesUpGaussiansLast) {
  Setting setting;
  setting.options.iterations = 30000;
  const MemoryPlan plan = cut(setting, 0.4);
  ASSERT_EQ(plan.gave_up.size(), 3u);
  EXPECT_TRUE(plan.gave_up[0].starts_with("photograph cache"));
  EXPECT_TRUE(plan.gave_up[1].starts_with("instances"));
  EXPECT_TRUE(plan.gave_up[2].starts_with("Gaussians"));
  EXPECT_GT(plan.max_cap, 10000u);
}

TEST(MemoryPlan, ThatCannotFitSaysHowMuchIsNeededAndWhatToDo) {
  Setting setting;
  setting.options.ram_budget = 30 * kMiB;
  const auto plan = setting.plan();
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::OutOfMemory);
  for (const char* part : {"needs at least", "MiB", "--ram-budget allows 30.0 MiB", "-r 2"}) {
    EXPECT_NE(plan.error().message.find(part), std::string::npos) << plan.error().message;
  }
}

TEST(MemoryPlan, NeverPassesWhatTheMachineHasWhateverIsAllowed) {
  Setting setting;
  setting.options.ram_budget = 1ull << 40;
  setting.available = 150 * kMiB;
  const MemoryPlan plan = setting.plan_or_raise();
  EXPECT_LT(plan.ram_budget, 170 * kMiB);
  EXPECT_LE(plan.ram_bytes(), plan.ram_budget);
  setting.available = 10 * kMiB;
  const auto refused = setting.plan();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("can be had"), std::string::npos)
      << refused.error().message;
}

TEST(MemoryPlan, OfADeviceWithMemoryOfItsOwnKeepsBothBudgets) {
  Setting setting;
  setting.shared = false;
  const MemoryPlan whole = setting.plan_or_raise();
  setting.options.vram_budget = whole.device_bytes / 10 * 7;
  const MemoryPlan plan = setting.plan_or_raise();
  EXPECT_LE(plan.device_bytes, setting.options.vram_budget);
  EXPECT_EQ(plan.device_limit_bytes, setting.options.vram_budget);
  EXPECT_TRUE(gave_up(plan, "photograph cache"));
  setting.options.ram_budget = plan.host_bytes / 2;
  const auto refused = setting.plan();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("--ram-budget"), std::string::npos);
}

TEST(MemoryPlan, LeavesInstancesWhatTheBudgetLeaves) {
  Setting setting;
  const uint64_t wanted = setting.plan_or_raise().ram_bytes();
  setting.options.ram_budget = wanted + 100 * kMiB;
  const MemoryPlan plan = setting.plan_or_raise();
  EXPECT_TRUE(plan.gave_up.empty());
  EXPECT_GT(plan.instance_budget, bytes_of(plan, "instances") + 40 * kMiB);
  EXPECT_LT(plan.instance_budget, bytes_of(plan, "instances") + 100 * kMiB);
}

TEST(MemoryPlan, IsTextWithALineForEachPartAndForWhatWasGivenUp) {
  const MemoryPlan plan = cut(full_setting(), 0.9);
  const std::vector<std::string> text = plan_text(plan);
  EXPECT_TRUE(text.front().starts_with("memory plan: at most ")) << text.front();
  EXPECT_NE(text.back().find("given up to fit: photograph cache"), std::string::npos);
  const auto json = to_json(plan);
  EXPECT_EQ(json["total"], plan.host_bytes + plan.device_bytes);
  EXPECT_EQ(json["gave_up"].size(), 1u);
  EXPECT_EQ(json["lines"].size(), plan.lines.size());
}

}  // namespace
}  // namespace millrace::test
