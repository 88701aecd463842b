// Results agree across backends (I11), as far as there are several that run the CPU kernels: to the
// bit.
#include <gtest/gtest.h>

#include "simulated/simulated_device.h"
#include "train/runner_bench.h"

namespace millrace::test {
namespace {

std::string state_on(const std::string& device) {
  constexpr uint32_t kSteps = 60;
  TrainOptions options = tiny_options(kSteps);
  options.device = device;
  options.test_capacity = {{1, 20}, {1, 41}};
  RunnerBench bench(options);
  bench.run_blocking(kSteps).or_raise();
  EXPECT_EQ(bench.runner->replays(), 2u);
  return bench.hash_blocking();
}

TEST(Backends, TheSimulatedDeviceEndsInTheStateOfTheCpuDevice) {
  const std::string cpu = state_on("cpu:2");
  EXPECT_EQ(state_on("simulated:random=3,poison,host"), cpu);
  EXPECT_EQ(state_on("simulated:immediate"), cpu);
  EXPECT_EQ(state_on("cpu:2,lazy"), cpu);
}

}  // namespace
}  // namespace millrace::test
