// Scenario: the thread that records training allocates nothing in a steady step.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/allocation_counter.h"
#include "train/runner_bench.h"

namespace millrace::test {
namespace {

constexpr uint32_t kWarm = 60;  // every SH degree, both reorderings' buffers, and all pools
constexpr uint32_t kEnd = kWarm + 100;

// The checking wrapper keeps a table of its own that allocates; it is no part of a user's run.
class Unchecked {
 public:
  Unchecked() { unsetenv("MILLRACE_CHECKED"); }
  ~Unchecked() { setenv("MILLRACE_CHECKED", "1", 1); }
};

uint64_t allocations_blocking(TrainOptions options, const std::string& device) {
  options.device = device;
  options.threads = 0;
  const Unchecked unchecked;
  RunnerBench bench(options);
  bench.device.events.reserve(100000);
  bench.keep_decoders_ahead();
  bench.runner->run_until_blocking(kWarm, bench.stop, {}).or_raise();
  const AllocationCounter allocations;
  bench.runner->run_until_blocking(kEnd, bench.stop, {}).or_raise();
  return allocations.count();
}

TEST(SteadyAllocation, AStepAllocatesNothing) {
  TrainOptions options = tiny_options(kEnd);
  options.stop_refine = 0;
  options.morton_interval = 0;
  EXPECT_EQ(allocations_blocking(options, "cpu:2,lazy"), 0u);
  EXPECT_EQ(allocations_blocking(options, "cpu:2"), 0u);
}

TEST(SteadyAllocation, AStepWithRefinementAndReorderingAllocatesNothing) {
  const TrainOptions options = tiny_options(kEnd);
  EXPECT_EQ(allocations_blocking(options, "cpu:2,lazy"), 0u);
  EXPECT_EQ(allocations_blocking(options, "cpu:2"), 0u);
}

TEST(SteadyAllocation, AStepWhosePhotographIsDecodedOnTheWayAllocatesNothing) {
  TrainOptions options = tiny_options(kEnd);
  options.image_cache_bytes = uint64_t{6} * 3 * 64 * 48;
  EXPECT_EQ(allocations_blocking(options, "cpu:2,lazy"), 0u);
}

TEST(SteadyAllocation, EveryBackgroundAllocatesNothing) {
  for (const char* mode : kBackgroundModes) {
    SCOPED_TRACE(mode);
    TrainOptions options = tiny_options(kEnd);
    options.bg_mode = mode;
    if (options.bg_mode == "image") options.bg_image = tiny_dataset().views[0].image_path.string();
    EXPECT_EQ(allocations_blocking(options, "cpu:2,lazy"), 0u);
  }
}

}  // namespace
}  // namespace millrace::test
