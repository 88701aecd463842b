// Training on the Vulkan backend under validation: the same state twice and through replays, no
// wait but pacing, close to the cpu device, and no message of the validation layer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "train/runner_bench.h"

namespace millrace::test {
namespace {

constexpr uint32_t kSteps = 100;  // refinements, SH degrees and reorderings
constexpr const char* kDevice = "vulkan:0,validate";

TrainOptions options_on(const std::string& device, uint32_t steps) {
  TrainOptions options = tiny_options(steps);
  options.device = device;
  return options;
}

std::string trained(const TrainOptions& options, uint64_t* replays, Room room = {}) {
  RunnerBench bench(options, room);
  const Result<void> ran = bench.run_blocking(options.iterations);
  if (!ran.ok()) {
    ADD_FAILURE() << ran.error().message;
    return {};
  }
  EXPECT_EQ(bench.accepted.size(), options.iterations);
  *replays = bench.runner->replays();
  return bench.hash_blocking();
}

class TrainingOnVulkan : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto device = open_device(kDevice);
    if (!device.ok()) GTEST_SKIP() << device.error().message;
  }
};

TEST_F(TrainingOnVulkan, EndsInTheSameStateTwiceAndThroughReplaysAndGrowth) {
  TrainOptions options = options_on(kDevice, kSteps);
  uint64_t replays = 0;
  const std::string hash = trained(options, &replays);
  EXPECT_EQ(replays, 0u);
  EXPECT_EQ(trained(options, &replays, {.rows = 1, .instances = 1u << 12}), hash);
  options.test_capacity = {{1, 0}, {1, 20}, {1, 25}, {1, 50}};
  options.test_capacity_random = 0.1;
  EXPECT_EQ(trained(options, &replays), hash);
  EXPECT_GE(replays, 4u);
}

TEST_F(TrainingOnVulkan, WaitsForPacingAlone) {
  RunnerBench bench(options_on(kDevice, kSteps));
  ASSERT_TRUE(bench.runner->run_until_blocking(20, bench.stop, {}).ok());
  const uint64_t before = bench.device.ledger().count_except_pacing();
  ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, {}).ok());
  EXPECT_EQ(bench.device.ledger().count_except_pacing(), before);
}

// A quaternion's length is in no image: its gradient is rounding alone, which Adam makes into
// steps.
void normalise_rotations(std::vector<float>& rows) {
  for (size_t row = 0; row < rows.size(); row += kGeometryLanes) {
    float* q = &rows[row + kLaneRotation];
    const float length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int i = 0; i < 4; ++i) q[i] /= length;
  }
}

// CONTRACTS.md: parameters within 1e-3 relative L2 after 20 steps, of the same seed.
TEST_F(TrainingOnVulkan, StaysCloseToTheCpuDeviceUpToTheFirstRefinement) {
  std::vector<float> rows[2];
  for (const int i : {0, 1}) {
    TrainOptions options = options_on(i == 0 ? "cpu:2" : kDevice, 20);
    options.stop_refine = 0;
    RunnerBench bench(options);
    ASSERT_TRUE(bench.run_blocking(20).ok());
    const ModelSnapshot snapshot =
        read_model_later(bench.state.model, bench.state.model.row_capacity, false);
    bench.device.wait_blocking(bench.device.submit(), {WaitReason::Test, "test.model"}).or_raise();
    rows[i] = rows_of(snapshot, 0);
    normalise_rotations(rows[i]);
  }
  ASSERT_EQ(rows[0].size(), rows[1].size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    const double a = rows[0][i], b = rows[1][i];
    difference += (a - b) * (a - b);
    size += a * a;
  }
  EXPECT_LT(std::sqrt(difference / size), 1e-3);
  EXPECT_GT(difference, 0) << "two implementations that agree to the bit are one";
}

}  // namespace
}  // namespace millrace::test
