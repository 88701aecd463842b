// Training on the CUDA backend. On the fake driver, where the CPU kernels run, the state is that of
// the cpu device to the bit; on a real device it ends in a state of its own, without a host wait.
#include <gtest/gtest.h>

#include "backends/cuda/fake/fake_cuda.h"
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
  return bench.hash_blocking();
}

class TrainingOnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (fake != nullptr) fake->reset();
    if (!open_device("cuda:0").ok()) {
      ASSERT_EQ(fake, nullptr) << "the fake device does not open";
      GTEST_SKIP() << "no CUDA device";
    }
  }
  cuda::fake::FakeCuda* const fake = cuda::fake::fake_cuda();  // null: a real driver
};

TEST_F(TrainingOnCuda, EndsInTheStateOfTheCpuDeviceWhereItRunsTheSameKernels) {
  if (fake == nullptr) GTEST_SKIP() << "needs the fake driver";
  const std::string cpu = trained_on("cpu:2");
  EXPECT_EQ(trained_on("cuda:0"), cpu);
  EXPECT_EQ(trained_on("cuda:0,check"), cpu);
  EXPECT_EQ(trained_on("cuda:0,staging=4096,depth=16,batch=3"), cpu);
}

TEST_F(TrainingOnCuda, EndsInTheSameStateTwice) {
  EXPECT_EQ(trained_on("cuda:0"), trained_on("cuda:0,batch=1"));
}

TEST_F(TrainingOnCuda, WaitsForPacingAlone) {
  RunnerBench bench(options_on("cuda:0"));
  const uint64_t waits_before = bench.device.ledger().count_except_pacing();  // of the decoder
  ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, {}).ok());
  EXPECT_EQ(bench.device.ledger().count_except_pacing(), waits_before);
}

TEST_F(TrainingOnCuda, TakesNoMemoryFromTheDriverOnceItIsSteady) {
  if (fake == nullptr) GTEST_SKIP() << "needs the fake driver";
  TrainOptions options = options_on("cuda:0");
  options.stop_refine = 0;
  options.morton_interval = 0;
  RunnerBench bench(options);
  ASSERT_TRUE(bench.runner->run_until_blocking(40, bench.stop, {}).ok());
  const uint64_t before = fake->counts().allocations;
  const uint64_t stops = fake->stopping_calls_of_this_thread();
  ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, {}).ok());
  EXPECT_EQ(fake->counts().allocations, before);
  EXPECT_EQ(fake->stopping_calls_of_this_thread(), stops);
}

TEST_F(TrainingOnCuda, ALostDeviceEndsTheRunWithThatCode) {
  if (fake == nullptr) GTEST_SKIP() << "needs the fake driver";
  RunnerBench bench(options_on("cuda:0"));
  ASSERT_TRUE(bench.run_blocking(10).ok());
  fake->fault_kernel(100, cuda::Status::IllegalAddress);
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::DeviceLost) << ran.error().message;
}

}  // namespace
}  // namespace millrace::test
