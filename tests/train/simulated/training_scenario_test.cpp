// Training with only the simulated device linked: every clock gives the same state, under poisoned
// memory and with every kernel's ranges checked; and a stalled device is fed the full run-ahead.
#include <gtest/gtest.h>

#include "simulated/simulated_device.h"
#include "train/runner_bench.h"

namespace millrace::test {
namespace {

constexpr uint32_t kSteps = 60;  // refinements, two SH degrees and two reorderings

TrainOptions options_on(const std::string& device) {
  TrainOptions options = tiny_options(kSteps);
  options.device = device;
  return options;
}

/// The state after kSteps on `device`, with little room at first, so that storage grows in flight.
std::string trained_on(const std::string& device) {
  RunnerBench bench(options_on(device), {.rows = 1, .instances = 1u << 12});
  const Result<void> ran = bench.run_blocking(kSteps);
  if (!ran.ok()) {
    ADD_FAILURE() << device << ": " << ran.error().message;
    return device;
  }
  EXPECT_EQ(bench.accepted.size(), kSteps);
  const std::string hash = bench.hash_blocking();
  EXPECT_TRUE(simulated::newest_control().problems().empty());
  return hash;
}

const std::string& immediate_state() {
  static const std::string hash = trained_on("simulated:immediate,checks");
  return hash;
}

TEST(TrainingOnTheSimulatedDevice, NoOtherBackendIsLinked) {
  const auto cpu = open_device("cpu");
  ASSERT_FALSE(cpu.ok());
  EXPECT_EQ(cpu.error().code, ErrorCode::Usage);
}

TEST(TrainingOnTheSimulatedDevice, ADeviceThreeBatchesBehindEndsInTheSameState) {
  EXPECT_EQ(trained_on("simulated:lag=3,checks"), immediate_state());
}

TEST(TrainingOnTheSimulatedDevice, ADeviceOneBatchBehindEndsInTheSameState) {
  EXPECT_EQ(trained_on("simulated:lag=1,checks"), immediate_state());
}

TEST(TrainingOnTheSimulatedDevice, ADeviceThatRunsOnlyWhatIsWaitedForEndsInTheSameState) {
  EXPECT_EQ(trained_on("simulated:hold,checks"), immediate_state());
}

TEST(TrainingOnTheSimulatedDevice, RandomProgressEndsInTheSameStateForEverySeed) {
  for (const char* seed : {"1", "2", "3"}) {
    EXPECT_EQ(trained_on(std::string("simulated:checks,random=") + seed), immediate_state());
  }
}

TEST(TrainingOnTheSimulatedDevice, UncheckedUnpoisonedMemoryEndsInTheSameState) {
  EXPECT_EQ(trained_on("simulated:lag=2"), immediate_state());
}

TEST(TrainingOnTheSimulatedDevice, AStalledDeviceIsFedTheFullRunAheadAndThenNamesThePacingWait) {
  RunnerBench bench(options_on("simulated:stall,checks"));
  const uint64_t waits_before = bench.device.ledger().count_except_pacing();  // of the decoder
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("deadlock: wait 'trainer.pacing' (Pacing)"), std::string::npos)
      << ran.error().message;
  EXPECT_EQ(bench.runner->next_step(), kRunAhead);
  EXPECT_EQ(bench.device.ledger().count(WaitReason::Pacing), 1u);
  EXPECT_EQ(bench.device.ledger().count_except_pacing(), waits_before);
  EXPECT_EQ(simulated::newest_control().commands_run(), 0u) << "the device was to stand still";
}

TEST(TrainingOnTheSimulatedDevice, AStallInSteadyStateLeavesRoomForTheFullRunAhead) {
  RunnerBench bench(options_on("simulated:hold"));
  ASSERT_TRUE(bench.run_blocking(30).ok());
  simulated::newest_control().set_clock(simulated::Clock::Stall);
  const uint64_t ran_before = simulated::newest_control().commands_run();
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("trainer.pacing"), std::string::npos) << ran.error().message;
  EXPECT_EQ(bench.runner->next_step(), 30 + kRunAhead);
  EXPECT_EQ(simulated::newest_control().commands_run(), ran_before);
}

TEST(TrainingOnTheSimulatedDevice, ATrainerIsTornDownOnAStalledDeviceWithoutWaitOrLeak) {  // B14
  {
    RunnerBench bench(options_on("simulated:hold,checks"));
    ASSERT_TRUE(bench.run_blocking(12).ok());
    simulated::newest_control().set_clock(simulated::Clock::Stall);
    ASSERT_FALSE(bench.run_blocking(kSteps).ok());
  }
  const simulated::ClosingReport report = simulated::newest_control().closing();
  ASSERT_TRUE(report.closed);
  EXPECT_EQ(report.ran, 0u);
  EXPECT_GT(report.dropped, 20u);
  EXPECT_EQ(report.leaks, std::vector<std::string>());
  EXPECT_EQ(simulated::newest_control().problems(), std::vector<std::string>());
}

TEST(TrainingOnTheSimulatedDevice, SteadyStepsWaitForPacingAlone) {
  RunnerBench bench(options_on("simulated:lag=3,poison"));
  const uint64_t waits_before = bench.device.ledger().count_except_pacing();  // of the decoder
  ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, {}).ok());
  EXPECT_EQ(bench.device.ledger().count_except_pacing(), waits_before);
}

TEST(TrainingOnTheSimulatedDevice, AWholeRunWithEvaluationAndFilesEndsInTheSameState) {
  TrainOptions options = options_on("simulated:immediate");
  options.iterations = 24;
  const std::string undisturbed = train_or_fail(options).state_sha256;
  options.device = "simulated:lag=3,checks";
  options.eval_steps = {12};
  options.save_steps = {20};
  EXPECT_EQ(train_or_fail(options).state_sha256, undisturbed);
  EXPECT_EQ(simulated::newest_control().problems(), std::vector<std::string>());
  EXPECT_EQ(simulated::newest_control().closing().leaks, std::vector<std::string>());
}

TEST(TrainingOnTheSimulatedDevice, AKernelThatFailsEndsTheRunWithItsNameAndSite) {
  RunnerBench bench(options_on("simulated:hold"));
  ASSERT_TRUE(bench.run_blocking(10).ok());
  simulated::newest_control().fail_kernel(100);
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("failed: a fault was injected"), std::string::npos)
      << ran.error().message;
  EXPECT_NE(ran.error().message.find(".cpp:"), std::string::npos) << ran.error().message;
}

TEST(TrainingOnTheSimulatedDevice, AKernelThatStraysEndsTheRunWithItsNameAndSite) {
  RunnerBench bench(options_on("simulated:lag=3,checks"));
  ASSERT_TRUE(bench.run_blocking(10).ok());
  simulated::newest_control().replace_kernel(
      KernelId::commit_step, [](const kernels::KernelCall& call) {
        call.buffer<StepBlock>(0)->step += 1;  // which the table lets it read only
      });
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  const std::string& message = ran.error().message;
  EXPECT_NE(message.find("kernel commit_step queued at "), std::string::npos) << message;
  EXPECT_NE(message.find("src/splat/render.cpp:"), std::string::npos) << message;
  EXPECT_NE(message.find("changed binding 0, which it may only read"), std::string::npos)
      << message;
}

TEST(TrainingOnTheSimulatedDevice, ALostDeviceEndsTheRunWithThatCode) {
  RunnerBench bench(options_on("simulated:random=5"));
  ASSERT_TRUE(bench.run_blocking(10).ok());
  simulated::newest_control().lose_device(150);
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::DeviceLost) << ran.error().message;
}

}  // namespace
}  // namespace millrace::test
