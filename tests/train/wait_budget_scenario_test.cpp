// Every preset keeps its budget of waits and launches, and a hidden wait planted in the trainer, in
// the facade or in a backend is found and named.
#include <gtest/gtest.h>

#include <cstdlib>

#include "device/test_hooks.h"
#include "train/run_meter.h"
#include "train/runner_bench.h"
#include "train/wait_budget.h"

namespace millrace::test {
namespace {

// Runs nothing before a wait asks for it: any wait but Pacing's is met, however fast the machine.
constexpr const char* kLazy = "cpu:2,lazy";
constexpr uint64_t kMostLaunches = 40;  // of a steady step with its refinement

// Steady steps with refinements and a reordering; MILLRACE_BUDGET_STEPS sets another number.
uint32_t end_step() {
  const char* steps = std::getenv("MILLRACE_BUDGET_STEPS");
  return kFirstSteadyStep + (steps ? static_cast<uint32_t>(std::atoi(steps)) : 35);
}

std::string listed(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

void expect_presets_keep_their_budgets_blocking(const std::string& device) {
  for (const Budget& budget : read_budgets()) {
    SCOPED_TRACE(budget.preset.dump());
    const auto complaints =
        run_complaints(budget, measure_blocking(budget.preset, device, end_step()));
    EXPECT_TRUE(complaints.empty()) << listed(complaints);
  }
}

TEST(WaitBudget, HasOneRowForEveryPresetAndNoOther) {
  const auto complaints = table_complaints(all_presets(), read_budgets());
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

TEST(WaitBudget, AllowsNoWaitAndFortyLaunchesOfATransactionAtMost) {
  for (const Budget& budget : read_budgets()) {
    EXPECT_EQ(budget.waits, 0u) << budget.preset.dump();
    EXPECT_LE(budget.step, kMostLaunches) << budget.preset.dump();
    EXPECT_LE(budget.refinement, kMostLaunches) << budget.preset.dump();
  }
}

TEST(WaitBudget, IsKeptByEveryPresetOnADeviceThatRunsNothingUnasked) {
  expect_presets_keep_their_budgets_blocking(kLazy);
}

TEST(WaitBudget, IsKeptByEveryPresetOnTheCpuDevice) {
  expect_presets_keep_their_budgets_blocking("cpu:2");
}

TEST(WaitBudget, IsKeptByEveryPresetOnASimulatedDeviceThatIsHeld) {
  expect_presets_keep_their_budgets_blocking("simulated:hold");
}

TEST(WaitBudget, IsKeptByEveryPresetOnASimulatedDeviceThreeBatchesBehind) {
  expect_presets_keep_their_budgets_blocking("simulated:lag=3");
}

TEST(WaitBudget, TheTableMustHoldWhatThereIs) {
  const std::vector<Preset> presets = all_presets();
  std::vector<Budget> budgets = read_budgets();
  const Budget last = budgets.back();
  budgets.pop_back();
  ASSERT_EQ(table_complaints(presets, budgets).size(), 1u);
  EXPECT_NE(table_complaints(presets, budgets)[0].find(last.preset.dump()), std::string::npos);
  budgets.push_back(last);
  budgets.push_back(last);
  EXPECT_EQ(table_complaints(presets, budgets).size(), 1u) << "a row that is there twice";
  budgets.back().preset["strategy"] = "unheard of";
  EXPECT_EQ(table_complaints(presets, budgets).size(), 1u) << "a row that no preset uses";
}

TEST(WaitBudget, OneWaitOrOneLaunchMoreIsFoundAndNamed) {
  const Budget budget = {{}, 2, 14, 10, 16};
  const WaitRecord wait = {"loader.decode", "src/data/image_loader.cpp:29", WaitReason::Decode, 2};
  Measured measured = {{wait}, 14, 10, 16};
  EXPECT_TRUE(run_complaints(budget, measured).empty());
  measured.waits.push_back({"a.site", "src/a.cpp:7", WaitReason::StagingFull, 1});
  EXPECT_EQ(run_complaints(budget, measured),
            (std::vector<std::string>{
                "2 waits at loader.decode (src/data/image_loader.cpp:29) for Decode; 3 in all, "
                "budget 2",
                "1 waits at a.site (src/a.cpp:7) for StagingFull; 3 in all, budget 2"}));
  measured = {{}, 15, 10, 15};
  EXPECT_EQ(run_complaints(budget, measured),
            (std::vector<std::string>{
                "15 launches in a step, budget 14",
                "15 launches in a reordering, budget 16: lower it, to keep what was won"}));
}

// Plants a wait for everything queued so far, for as long as it lives.
class Planted {
 public:
  explicit Planted(WaitPlace place) : place_(place) {
    plant_wait(place, [](Device& device, const WaitSite& site) {
      device.wait_blocking(device.submit(), site).or_raise();
    });
  }
  ~Planted() { plant_wait(place_, nullptr); }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;

 private:
  WaitPlace place_;
};

// The first complaint of the budget of a preset while a wait is planted at `place`.
std::string complaint_about_blocking(WaitPlace place) {
  const Budget budget = read_budgets().front();
  const Planted planted(place);
  const auto complaints =
      run_complaints(budget, measure_blocking(budget.preset, kLazy, kFirstSteadyStep + 10));
  // Waits come first. The device's submits that the plant makes split the counts of launches.
  return complaints.empty() ? "" : complaints.front();
}

void expect_names(const std::string& complaint, const std::string& site, const std::string& file) {
  EXPECT_NE(complaint.find("waits at " + site + " (" + file), std::string::npos) << complaint;
  EXPECT_NE(complaint.find(") for UserRead;"), std::string::npos) << complaint;
}

TEST(PlantedWait, InTheTrainerIsFoundAndNamed) {
  expect_names(complaint_about_blocking(WaitPlace::Trainer), "planted.trainer",
               "src/train/runner.cpp:");
}

TEST(PlantedWait, InTheFacadeIsFoundAndNamed) {
  expect_names(complaint_about_blocking(WaitPlace::Facade), "planted.facade",
               "src/tensor/launch.cpp:");
}

TEST(PlantedWait, InABackendIsFoundAndNamed) {
  expect_names(complaint_about_blocking(WaitPlace::Backend), "planted.backend",
               "src/backends/cpu/cpu_device.cpp:");
}

TEST(RunAhead, IsRecordedInFullWithoutAWaitOnADeviceThatStalls) {
  TrainOptions options = tiny_options(100);
  options.device = kLazy;
  RunnerBench bench(options);
  bench.device.wait_blocking(bench.device.submit(), {WaitReason::Test, "test.begin"}).or_raise();
  const Point before = bench.device.poll();
  bench.device.events.clear();
  ASSERT_TRUE(bench.runner->run_until_blocking(kRunAhead, bench.stop, {}).ok());
  EXPECT_EQ(bench.device.poll(), before) << "the device ran something";
  ASSERT_EQ(bench.device.events.size(), kRunAhead);
  for (const QueueEvent& event : bench.device.events) EXPECT_EQ(event.kind, QueueEvent::kSubmit);
}

}  // namespace
}  // namespace millrace::test
