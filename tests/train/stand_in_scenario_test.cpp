// Scenarios B8, B10 and B13 of the design's list (BACKENDS.md, Appendix B): denominators that
// depend on mask and crop box, appearance models beside the deferred count, the controller's phase.
// Stand-ins take the place of features to come; the steps around them are the trainer's.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <string>

#include "simulated/simulated_device.h"
#include "train/runner_bench.h"
#include "train/stand_in.h"

namespace millrace::test {
namespace {

using simulated::newest_control;

constexpr uint32_t kSteps = 20;
constexpr uint32_t kViews = 10;  // for training
constexpr uint32_t kWidth = 64, kHeight = 48;

struct ScenarioDevice {
  const char* name;
  const char* id;
};
constexpr ScenarioDevice kDevices[] = {
    {"CpuLazy", "cpu:2,lazy"},
    {"SimulatedHeld", "simulated:hold,poison,host"},
    {"SimulatedLagging", "simulated:lag=3,poison,host"},
    {"SimulatedRandom", "simulated:random=11,poison,host"},
    {"SimulatedRandomAgain", "simulated:random=12,poison"},
};
constexpr const char* kRoomy = "cpu:2";
constexpr const char* kStalled = "simulated:stall,poison,host";

TrainOptions options_on(const std::string& device, std::vector<uint32_t> refused_steps = {}) {
  TrainOptions options = tiny_options(kSteps);
  options.device = kStandInPrefix + device;
  for (const uint32_t step : refused_steps) options.test_capacity.push_back({1, step});
  return options;
}

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

/// What a run leaves behind.
struct Outcome {
  std::vector<uint32_t> records;  // of the stand-in, as bits
  std::string model;              // hash
  std::vector<float> losses;      // of every accepted step
  bool operator==(const Outcome&) const = default;
};

/// Runs to `end_step`, and expects no wait but Pacing on the way there, replays included.
void run_without_waits_blocking(RunnerBench& bench, uint32_t end_step) {
  const uint64_t before = bench.device.ledger().count_except_pacing();
  const auto take = [&](const StepMetrics& metrics) { bench.accepted.push_back(metrics); };
  const Result<void> ran = bench.runner->run_until_blocking(end_step, bench.stop, take);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_EQ(bench.device.ledger().count_except_pacing(), before) << "the host waited";
}

Outcome outcome_blocking(RunnerBench& bench, uint32_t end_step,
                         const std::function<std::vector<float>()>& records_blocking) {
  bench.run_blocking(end_step).or_raise();
  Outcome outcome = {bits_of(records_blocking()), bench.hash_blocking(), {}};
  for (const StepMetrics& metrics : bench.accepted) outcome.losses.push_back(metrics.loss);
  EXPECT_EQ(outcome.losses.size(), end_step);
  if (bench.device.info().id == "simulated") {
    EXPECT_EQ(newest_control().problems(), std::vector<std::string>());
  }
  return outcome;
}

// A device that stands still takes the first steps of a run with a stand-in, and runs none of it.
void expect_full_run_ahead_blocking(RunnerBench& bench) {
  run_without_waits_blocking(bench, kRunAhead);
  EXPECT_EQ(bench.runner->next_step(), kRunAhead);
  EXPECT_EQ(newest_control().commands_run(), 0u) << "the device was to stand still";
  EXPECT_EQ(bench.device.ledger().count(WaitReason::Pacing), 0u);
}

class OnDevice : public ::testing::TestWithParam<ScenarioDevice> {};
std::string name_of(const ::testing::TestParamInfo<ScenarioDevice>& info) {
  return info.param.name;
}

// --- B10: the count that decides is read late while appearance models train ---

using Appearance = OnDevice;
INSTANTIATE_TEST_SUITE_P(On, Appearance, ::testing::ValuesIn(kDevices), name_of);

Outcome appearance_run_blocking(const std::string& device, std::vector<uint32_t> refused_steps,
                                AppearanceStandIn::Fault fault = AppearanceStandIn::Fault::None) {
  RunnerBench bench(options_on(device, refused_steps));
  AppearanceStandIn appearance(kViews, fault);
  run_without_waits_blocking(bench, kSteps);
  Outcome outcome = outcome_blocking(bench, kSteps, [&] { return appearance.records_blocking(); });
  EXPECT_EQ(bench.runner->replays(), refused_steps.size());
  EXPECT_GT(appearance.n_evictions(), kSteps / 2) << "the slots were to be too few";
  return outcome;
}

const Outcome& roomy_appearance() {
  static const Outcome outcome = appearance_run_blocking(kRoomy, {});
  return outcome;
}

TEST_P(Appearance, EndsInTheStateOfARoomyRunWhenAFrameIsRefused) {  // B10
  EXPECT_EQ(appearance_run_blocking(GetParam().id, {5}), roomy_appearance());
}

TEST_P(Appearance, EndsInTheStateOfARoomyRunWhenFramesAreRefusedInARow) {  // B10, B12
  EXPECT_EQ(appearance_run_blocking(GetParam().id, {0, 5, 6, 19}), roomy_appearance());
}

TEST(AppearanceRecords, CountEveryAcceptedStepOnce) {
  const uint32_t size = record_size(3);
  for (const std::vector<uint32_t>& refused : {std::vector<uint32_t>{}, {5}, {0, 5, 6, 19}}) {
    const Outcome outcome = appearance_run_blocking("cpu:2,lazy", refused);
    ASSERT_EQ(outcome.records.size(), kViews * size);
    for (uint32_t view = 0; view < kViews; ++view) {
      const auto steps = std::bit_cast<float>(outcome.records[view * size + 9]);
      const auto last = std::bit_cast<float>(outcome.records[view * size + 10]);
      EXPECT_EQ(steps, kSteps / kViews) << view;
      EXPECT_GE(last, kViews) << view;
      EXPECT_NE(outcome.records[view * size], 0u) << "view " << view << " was not trained";
    }
  }
}

TEST(AppearanceRecords, ChangeTheTraining) {
  RunnerBench bench(options_on(kRoomy));
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_NE(bench.hash_blocking(), roomy_appearance().model);
}

TEST(AppearanceRecords, OnADeviceThatStallsAreQueuedForTheFullRunAhead) {
  RunnerBench bench(options_on(kStalled));
  AppearanceStandIn appearance(kViews, AppearanceStandIn::Fault::None);
  expect_full_run_ahead_blocking(bench);
}

// Each fault is seen by the comparison above.
TEST(AppearanceFault, ACommitThatIgnoresTheGateIsSeen) {
  const auto outcome = appearance_run_blocking("cpu:2,lazy", {5}, AppearanceStandIn::Fault::NoGate);
  EXPECT_NE(outcome.records, roomy_appearance().records);
}

TEST(AppearanceFault, ASlotMapThatAReplayRewindsIsSeen) {
  const auto outcome =
      appearance_run_blocking("cpu:2,lazy", {5}, AppearanceStandIn::Fault::MapRewound);
  EXPECT_NE(outcome.records, roomy_appearance().records);
}

TEST(AppearanceFault, AGradientThatIsNotZeroedWhenAnAttemptBeginsIsSeen) {
  const auto fault = AppearanceStandIn::Fault::GradientKept;
  EXPECT_EQ(appearance_run_blocking("cpu:2,lazy", {}, fault), roomy_appearance())
      << "without a replay there is nothing to see";
  EXPECT_NE(appearance_run_blocking("cpu:2,lazy", {5}, fault).records, roomy_appearance().records);
}

TEST(AppearanceFault, AGateThatMultipliesLetsGarbageThroughAndIsSeen) {
  // Before the first frame the image is poison, and nought times that is no number.
  RunnerBench bench(options_on("simulated:lag=3,poison", {0}));
  AppearanceStandIn appearance(kViews, AppearanceStandIn::Fault::GateByProduct);
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::Diverged) << ran.error().message;
}

// --- B13: a controller that reads the raw image ---

using Controller = OnDevice;
INSTANTIATE_TEST_SUITE_P(On, Controller, ::testing::ValuesIn(kDevices), name_of);

constexpr uint32_t kControllerFrom = 8;

Outcome controller_run_blocking(const std::string& device, std::vector<uint32_t> refused_steps,
                                GateUse use = GateUse::Obeyed) {
  RunnerBench bench(options_on(device, refused_steps));
  ControllerStandIn controller(kControllerFrom, use);
  run_without_waits_blocking(bench, kSteps);
  Outcome outcome = outcome_blocking(bench, kSteps, [&] { return controller.record_blocking(); });
  EXPECT_EQ(bench.runner->replays(), refused_steps.size());
  return outcome;
}

const Outcome& roomy_controller() {
  static const Outcome outcome = controller_run_blocking(kRoomy, {});
  return outcome;
}

TEST_P(Controller, PhaseWaitsForNothingAndReplaysExactly) {  // B13
  const auto outcome = controller_run_blocking(GetParam().id, {7, 8, 13, 19});
  EXPECT_EQ(outcome, roomy_controller());
  EXPECT_EQ(std::bit_cast<float>(outcome.records[9]), kSteps - kControllerFrom);
}

TEST(ControllerPhase, OnADeviceThatStallsIsQueuedForTheFullRunAhead) {
  RunnerBench bench(options_on(kStalled));
  ControllerStandIn controller(0, GateUse::Obeyed);
  expect_full_run_ahead_blocking(bench);
}

TEST(ControllerFault, AnAdamThatIgnoresTheGateIsSeen) {
  EXPECT_NE(controller_run_blocking("cpu:2,lazy", {13}, GateUse::Ignored).records,
            roomy_controller().records);
}

// --- B8: a denominator that depends on mask and crop box ---

using Denominator = OnDevice;
INSTANTIATE_TEST_SUITE_P(On, Denominator, ::testing::ValuesIn(kDevices), name_of);

using Source = DenominatorStandIn::Source;
constexpr uint32_t kDenominatorSteps = 10;

// The crop box changes before step 4 and the mask before step 7, each while steps are in flight.
Outcome denominator_run_blocking(const std::string& device, Source source,
                                 std::vector<uint32_t> refused_steps = {}) {
  RunnerBench bench(options_on(device, refused_steps));
  DenominatorStandIn loss(kWidth, kHeight, source);
  run_without_waits_blocking(bench, 4);
  loss.add({bench.runner->next_step(), 0, 40});
  run_without_waits_blocking(bench, 7);
  loss.add({7, 1, 40});
  run_without_waits_blocking(bench, kDenominatorSteps);
  Outcome outcome =
      outcome_blocking(bench, kDenominatorSteps, [&] { return loss.losses_blocking(); });
  EXPECT_EQ(bench.runner->replays(), refused_steps.size());
  return outcome;
}

const Outcome& uncached() {
  static const Outcome outcome = denominator_run_blocking(kRoomy, Source::Host);
  return outcome;
}

TEST_P(Denominator, ChangedMidRunGivesTheLossesOfAnUncachedRunWithoutAWait) {  // B8
  EXPECT_EQ(denominator_run_blocking(GetParam().id, Source::Device), uncached());
}

TEST_P(Denominator, OfAReplayIsThatOfItsStep) {  // B8
  EXPECT_EQ(denominator_run_blocking(GetParam().id, Source::Device, {3, 5, 9}), uncached());
}

TEST(DenominatorStep, OnADeviceThatStallsIsQueuedForTheFullRunAhead) {
  RunnerBench bench(options_on(kStalled));
  DenominatorStandIn loss(kWidth, kHeight, Source::Device);
  expect_full_run_ahead_blocking(bench);
}

TEST(DenominatorFault, ACachedDenominatorIsSeenFromTheFirstChangeOn) {
  const auto outcome = denominator_run_blocking("cpu:2,lazy", Source::Cached);
  for (uint32_t step = 0; step < kDenominatorSteps; ++step) {
    EXPECT_EQ(outcome.records[step] == uncached().records[step], step < 4) << step;
  }
}

TEST(DenominatorFault, AReplayThatTakesTheNewestEditIsSeen) {
  EXPECT_EQ(denominator_run_blocking("cpu:2,lazy", Source::NewestEdit), uncached())
      << "without a replay there is nothing to see";
  EXPECT_NE(denominator_run_blocking("cpu:2,lazy", Source::NewestEdit, {3}).records,
            uncached().records);
}

}  // namespace
}  // namespace millrace::test
