// Rules of the sticky gate that no other test breaks with: the host's bound on N, cheap closing,
// predicted room, placement that no gate decides, metrics, outcomes, pinned inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "simulated/simulated_device.h"
#include "train/runner_bench.h"
#include "train/scene.h"

namespace millrace::test {
namespace {

using simulated::newest_control;

constexpr uint32_t kSteps = 80;

TrainOptions options_on(const std::string& device, uint32_t n_steps = kSteps) {
  TrainOptions options = tiny_options(n_steps);
  options.device = device;
  return options;
}

std::string undisturbed_hash(const TrainOptions& options) {
  RunnerBench bench(options);
  bench.run_blocking(options.iterations).or_raise();
  EXPECT_EQ(bench.runner->replays(), 0u);
  return bench.hash_blocking();
}

// --- N lives on the device; the host keeps a bound ---

TEST(RowBound, IsNeverBelowTheRowsThatQueuedRefinementsMake) {
  TrainOptions options = options_on("cpu:2,lazy", 24);
  options.refine_every = 1;  // so that several are in flight
  options.start_refine = 0;
  RunnerBench bench(options);
  std::vector<Ticket> controls;
  std::vector<uint64_t> bounds;
  for (uint32_t step = 0; step < options.iterations; ++step) {
    ASSERT_TRUE(bench.runner->run_until_blocking(step + 1, bench.stop, {}).ok());
    controls.push_back(read_later(bench.state.model.control));
    bounds.push_back(bench.runner->row_bound());
  }
  ASSERT_TRUE(bench.runner->settle_blocking({}).ok());
  EXPECT_GT(bench.rows_blocking(), 2 * bench.initial_rows);
  for (uint32_t step = 0; step < options.iterations; ++step) {
    const double rows = controls[step].as<Control>().counts.rows;
    EXPECT_LE(rows, static_cast<double>(bounds[step])) << step;
    if (step <= kRunAhead) continue;  // no row count has come back yet
    EXPECT_LE(static_cast<double>(bounds[step]), rows * std::pow(1.05, kRunAhead + 1) + 1) << step;
  }
}

// How many refinements are still to be told that there is no room for their rows.
std::atomic<int> refinements_to_refuse = 0;

void decide_without_rows(const kernels::KernelCall& call) {
  DecideParams params = call.params_as<DecideParams>();
  if (params.check_rows == 1 && refinements_to_refuse > 0) {
    --refinements_to_refuse;
    params.row_capacity = 1;
  }
  kernels::gate_decide(
      {call.threads, reinterpret_cast<const std::byte*>(&params), call.buffers, call.bytes});
}

TEST(Refinement, WithoutRoomForItsRowsIsReplayedWholeAndNotClipped) {
  const TrainOptions options = options_on("simulated:lag=3,poison,host");
  RunnerBench bench(options);
  newest_control().replace_kernel(KernelId::gate_decide, &decide_without_rows);
  refinements_to_refuse = 1;
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_EQ(refinements_to_refuse, 0);
  EXPECT_EQ(bench.runner->replays(), 1u);
  EXPECT_EQ(bench.hash_blocking(), undisturbed_hash(options));
}

// --- Cheap closing ---

// Records the run-ahead with far too little room, and says whether some frame needs more than those
// before it.
bool needs_rise_blocking(uint64_t seed) {
  TrainOptions options = options_on("cpu:2,lazy");
  options.seed = seed;
  RunnerBench bench(options, {.rows = 0, .instances = 16});
  std::vector<Ticket> controls;
  for (uint32_t step = 0; step < kRunAhead; ++step) {
    bench.runner->run_until_blocking(step + 1, bench.stop, {}).or_raise();
    controls.push_back(read_later(bench.state.model.control));
  }
  bench.device.wait_blocking(bench.device.submit(), {WaitReason::Test, "test.needs"}).or_raise();
  uint64_t most = 0;
  bool rose = false;
  for (const Ticket& ticket : controls) {
    const auto control = ticket.as<Control>();
    EXPECT_EQ(control.gate.closed, 1u);
    EXPECT_EQ(control.gate.first_rejected, transaction_id(0, TransactionKind::Step));
    rose = rose || (most > 0 && control.counts.instances > most);
    most = std::max(most, control.counts.instances);
    EXPECT_EQ(control.gate.need_instances, most);
  }
  bench.run_blocking(kRunAhead).or_raise();
  EXPECT_EQ(bench.runner->replays(), 1u);
  return rose;
}

TEST(ClosedGate, KnowsTheNeedOfEveryQueuedFrameSoThatOneGrowthServesAll) {
  bool rose = false;
  for (const uint64_t seed : {1u, 2u, 3u, 4u}) rose = needs_rise_blocking(seed) || rose;
  EXPECT_TRUE(rose) << "the first frame always needed most: nothing was tested";
}

TEST(PredictedRoom, GrowsWithTheModelBeforeAFrameIsRefused) {
  TrainOptions options = options_on("cpu:2");
  options.refine_every = 4;
  RunnerBench first_pass(options);
  ASSERT_TRUE(first_pass.run_blocking(10).ok());
  const uint64_t room = first_pass.runner->max_instances();
  RunnerBench bench(options, {.rows = 0, .instances = room + room / 8});
  const uint64_t capacity = bench.state.workspace.instances.capacity;
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_GT(bench.runner->max_instances(), capacity) << "the room was to be too small in the end";
  EXPECT_EQ(bench.runner->replays(), 0u);
}

// --- Values are gated, placement never is ---

TEST(Placement, OfAModelStaysThroughReorderingsAndRefinementsAcceptedOrNot) {
  TrainOptions options = options_on("cpu:2");
  options.test_capacity = {{1, 20}, {1, 25}, {1, 50}};
  RunnerBench bench(options);
  const auto buffers = [&] {
    std::vector<uint32_t> all = {bench.state.model.control.slice().buffer.value};
    for (const ParameterGroup* group : {&bench.state.model.geometry, &bench.state.model.sh_rest}) {
      for (const Tensor* tensor : {&group->value, &group->first_moment, &group->second_moment}) {
        all.push_back(tensor->slice().buffer.value);
      }
    }
    return all;
  };
  const std::vector<uint32_t> before = buffers();
  for (uint32_t step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(bench.runner->run_until_blocking(step, bench.stop, {}).ok());
    ASSERT_EQ(buffers(), before) << step;
  }
  ASSERT_TRUE(bench.runner->settle_blocking({}).ok());
  EXPECT_EQ(bench.runner->replays(), 3u);
}

// --- Edits ---

TEST(Edit, ThatComesWhileARefusedStepIsInFlightDoesNotReachItsReplay) {
  const Edit edit = {.step = 22, .bg_color = std::array<float, 3>{1, 0.5f, 0}, .max_cap = {}};
  TrainOptions options = options_on("cpu:2,lazy", 40);
  RunnerBench reference(options);
  reference.edits.add(edit);
  ASSERT_TRUE(reference.run_blocking(40).ok());
  options.test_capacity = {{1, 20}};
  RunnerBench bench(options);
  ASSERT_TRUE(bench.runner->run_until_blocking(22, bench.stop, {}).ok());
  ASSERT_EQ(bench.runner->replays(), 0u) << "the refusal was to be in flight still";
  bench.edits.add(edit);
  ASSERT_TRUE(bench.run_blocking(40).ok());
  EXPECT_EQ(bench.runner->replays(), 1u);
  EXPECT_EQ(bench.hash_blocking(), reference.hash_blocking());
}

// --- Metrics are those of accepted steps ---

TEST(Metrics, OfARunWithReplaysAreThoseOfARoomyRunWithTheEpochThatWasAccepted) {
  TrainOptions options = options_on("simulated:lag=3,poison,host", 40);
  RunnerBench roomy(options);
  ASSERT_TRUE(roomy.run_blocking(40).ok());
  options.test_capacity = {{1, 0}, {1, 7}, {1, 8}, {1, 30}};
  RunnerBench cut(options);
  ASSERT_TRUE(cut.run_blocking(40).ok());
  ASSERT_EQ(cut.accepted.size(), 40u);
  for (uint32_t step = 0; step < 40; ++step) {
    StepMetrics expected = roomy.accepted[step];
    EXPECT_EQ(expected.epoch, 0u);
    expected.epoch = step < 7 ? 1 : step < 8 ? 2 : step < 30 ? 3 : 4;
    EXPECT_EQ(std::memcmp(&cut.accepted[step], &expected, sizeof(expected)), 0) << step;
  }
}

TEST(Metrics, GarbageOfARefusedStepIsNoDivergence) {
  // The image of the first attempt is what the memory held: poison, which is no number.
  TrainOptions options = options_on("simulated:hold,poison", 10);
  options.test_capacity = {{1, 0}};
  RunnerBench bench(options);
  const Result<void> ran = bench.run_blocking(10);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_EQ(bench.runner->replays(), 1u);
  for (const StepMetrics& metrics : bench.accepted) EXPECT_TRUE(std::isfinite(metrics.loss));
}

TEST(Metrics, BehindAClosedGateAreNotTouched) {
  TrainOptions options = options_on("simulated:hold,poison", 10);
  options.test_capacity = {{1, 0}};
  RunnerBench bench(options);
  ASSERT_TRUE(bench.runner->run_until_blocking(1, bench.stop, {}).ok());
  const Ticket ticket = read_later(bench.state.model.control);
  newest_control().run_all();
  const auto control = ticket.as<Control>();
  ASSERT_EQ(control.gate.closed, 1u);
  const StepMetrics none = {};
  EXPECT_EQ(std::memcmp(&control.metrics, &none, sizeof(none)), 0);
}

// --- Outcomes ---

TEST(Outcome, OfAStepThatSeesNoGaussianIsAnAcceptedStep) {
  RunnerBench bench(options_on("cpu:2"));
  std::vector<CameraRecord> cameras;
  for (const View& view : tiny_dataset().views) {
    if (view.held_out) continue;
    CameraRecord camera = make_camera_record(view.camera, kNearPlane * bench.scale.normaliser);
    camera.translation[2] -= 1e6f;  // everything is behind it
    cameras.push_back(camera);
  }
  bench.state.cameras = make_camera_table(bench.device, cameras);
  const Result<void> ran = bench.run_blocking(30);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  ASSERT_EQ(bench.accepted.size(), 30u);
  for (uint32_t step = 0; step < 30; ++step) {
    EXPECT_EQ(bench.accepted[step].step, step);
    EXPECT_EQ(bench.accepted[step].visible, 0u);
    EXPECT_EQ(bench.accepted[step].instances, 0u);
    EXPECT_TRUE(std::isfinite(bench.accepted[step].loss));
  }
  EXPECT_EQ(bench.runner->replays(), 0u);
  EXPECT_GT(bench.rows_blocking(), bench.initial_rows) << "refinements go on";
}

TEST(Outcome, OfADeviceFaultIsAnErrorAndNoReplay) {
  RunnerBench bench(options_on("simulated:lag=3"));
  ASSERT_TRUE(bench.run_blocking(12).ok());
  newest_control().fail_kernel(40);
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::Internal);
  EXPECT_EQ(bench.runner->replays(), 0u);
  EXPECT_EQ(bench.runner->epoch(), 0u);
}

TEST(Outcome, OfEndlessRefusalsIsATypedErrorThatLeavesTheStateAsItWas) {  // B11
  RunnerBench bench(options_on("cpu:2"));
  ASSERT_TRUE(bench.run_blocking(7).ok());
  const auto hash_blocking = [&] {
    return state_sha256_blocking(bench.state.model, {7, bench.options.seed}).or_raise();
  };
  const std::string before = hash_blocking();
  bench.device.refuse_every_frame = true;
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::OutOfMemory);
  EXPECT_EQ(bench.accepted.size(), 7u);
  EXPECT_EQ(hash_blocking(), before);
}

// --- Pinned inputs ---

TEST(PinnedInputs, OfARefusedStepAreStillThereForItsReplay) {
  TrainOptions options = options_on("cpu:2,lazy");
  options.image_cache_bytes = uint64_t{2} * 4 * 3 * 64 * 48;  // targets of four of the ten views
  options.test_capacity = {{1, 22}, {1, 31}, {1, 47}};
  RunnerBench bench(options);
  ASSERT_FALSE(bench.photographs->all_resident());
  bench.keep_decoders_ahead();
  ASSERT_TRUE(bench.runner->run_until_blocking(20, bench.stop, {}).ok());
  const uint64_t before = bench.device.ledger().count(WaitReason::Decode);
  ASSERT_TRUE(bench.runner->run_until_blocking(60, bench.stop, {}).ok());
  EXPECT_EQ(bench.runner->replays(), 3u);
  EXPECT_EQ(bench.device.ledger().count(WaitReason::Decode), before)
      << "a replay had to read a photograph again";
}

}  // namespace
}  // namespace millrace::test
