// Scenario: the thread that records training allocates nothing in a steady step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "support/allocation_counter.h"
#include "train/runner_bench.h"

namespace millrace::test {
namespace {

constexpr uint32_t kWarm = 60;  // every SH degree, both reorderings' buffers, and all pools

// The checking wrapper keeps a table of its own that allocates; it is no part of a user's run.
class Unchecked {
 public:
  Unchecked() { unsetenv("MILLRACE_CHECKED"); }
  ~Unchecked() { setenv("MILLRACE_CHECKED", "1", 1); }
};

// The fewest allocations of a hundred steps among `rounds` hundreds after the warm-up.
uint64_t allocations_blocking(TrainOptions options, const std::string& device, int rounds) {
  options.device = device;
  options.threads = 0;
  const Unchecked unchecked;
  RunnerBench bench(options);
  bench.device.events.reserve(100000);
  bench.keep_decoders_ahead();
  bench.runner->run_until_blocking(kWarm, bench.stop, {}).or_raise();
  uint64_t fewest = UINT64_MAX;
  for (int round = 0; round < rounds && fewest > 0; ++round) {
    const AllocationCounter allocations;
    const uint32_t end = bench.runner->next_step() + 100;
    bench.runner->run_until_blocking(end, bench.stop, {}).or_raise();
    fewest = std::min(fewest, allocations.count());
  }
  return fewest;
}

// Every step finds the deepest queue there can be, so the first hundred steps must do.
uint64_t lazy_allocations_blocking(const TrainOptions& options) {
  return allocations_blocking(options, "cpu:2,lazy", 1);
}

// How deep the queue gets is up to the machine, and a new depth may come late.
uint64_t cpu_allocations_blocking(const TrainOptions& options) {
  return allocations_blocking(options, "cpu:2", 5);
}

class SteadyAllocation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!AllocationCounter::works()) GTEST_SKIP() << "no counter under ThreadSanitizer";
  }
};

TEST_F(SteadyAllocation, AStepAllocatesNothing) {
  TrainOptions options = tiny_options(1000);
  options.stop_refine = 0;
  options.morton_interval = 0;
  EXPECT_EQ(lazy_allocations_blocking(options), 0u);
  EXPECT_EQ(cpu_allocations_blocking(options), 0u);
}

TEST_F(SteadyAllocation, AStepWithRefinementAndReorderingAllocatesNothing) {
  const TrainOptions options = tiny_options(1000);
  EXPECT_EQ(lazy_allocations_blocking(options), 0u);
  EXPECT_EQ(cpu_allocations_blocking(options), 0u);
}

TEST_F(SteadyAllocation, AStepWhosePhotographIsDecodedOnTheWayAllocatesNothing) {
  TrainOptions options = tiny_options(1000);
  options.image_cache_bytes = uint64_t{6} * 3 * 64 * 48;
  EXPECT_EQ(lazy_allocations_blocking(options), 0u);
  EXPECT_EQ(cpu_allocations_blocking(options), 0u);
}

TEST_F(SteadyAllocation, EveryBackgroundAllocatesNothing) {
  for (const char* mode : kBackgroundModes) {
    SCOPED_TRACE(mode);
    TrainOptions options = tiny_options(1000);
    options.bg_mode = mode;
    if (options.bg_mode == "image") options.bg_image = tiny_dataset().views[0].image_path.string();
    EXPECT_EQ(lazy_allocations_blocking(options), 0u);
  }
}

TEST_F(SteadyAllocation, AStepOfTheWholeTrainerWithItsAccountsAllocatesNothing) {
  const Unchecked unchecked;
  TrainOptions options = tiny_options(kWarm + 110);
  options.device = "cpu:2,lazy";
  options.threads = 0;
  std::optional<AllocationCounter> allocations;
  std::optional<uint64_t> count;
  TrainObserver observer;
  observer.step = [&](const StepProgress& progress) {
    if (progress.step == kWarm) allocations.emplace();
    if (progress.step != kWarm + 100) return;
    count = allocations->count();
    allocations.reset();
  };
  train_or_fail(options, observer);
  EXPECT_EQ(count, 0u);
}

}  // namespace
}  // namespace millrace::test
