// Scenario: steady work on the CPU device allocates nothing on the recording thread.
#include <atomic>
#include <string>

#include "base/worker_pool.h"
#include "device/device_helpers.h"
#include "device/trace.h"
#include "support/allocation_counter.h"

namespace millrace {
namespace {

using testing::add;
using testing::whole;

/// What a training step does to a device: temporaries, launches, an upload, and a ticket read late.
void step(Device& device, BufferId state, Ticket* last) {
  const uint32_t numbers[4] = {1, 2, 3, 4};
  const BufferId temporary = device.allocate(5000, "temporary").or_raise();
  device.fill(whole(temporary, 5000), 1).or_raise();
  device.upload({state, 0, 16}, std::as_bytes(std::span(numbers))).or_raise();
  for (int i = 0; i < 30; ++i) add(device, whole(state, 4096), 1).or_raise();
  device.copy({temporary, 0, 64}, {state, 0, 64}).or_raise();
  const Ticket ticket = device.download({temporary, 0, 64}).or_raise();
  device.release(temporary);
  device.wait_blocking(last->point(), {WaitReason::Pacing, "test.pacing"}).or_raise();
  *last = ticket;
}

// Keeps the compiler from leaving out a new and its delete.
int* volatile kept = nullptr;

class SteadyAllocation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::AllocationCounter::works()) GTEST_SKIP() << "no counter under ThreadSanitizer";
  }
};

TEST_F(SteadyAllocation, TheCounterCountsThisThreadAloneWhileItLives) {
  const test::AllocationCounter allocations;
  kept = new int(1);
  delete kept;
  EXPECT_EQ(allocations.count(), 1u);
  WorkerPool pool(1);
  const uint64_t before = allocations.count();
  std::atomic<bool> done = false;
  pool.post([&done] {
    delete new std::string(100, 'x');
    done = true;
  });
  while (!done) {
  }
  EXPECT_LE(allocations.count() - before, 1u) << "the queue's own entry at most";
}

void expect_no_allocation(TraceRecorder* trace) {
  const auto device = open_device("cpu:2,lazy").or_raise();
  device->set_trace(trace);
  const BufferId state = device->allocate(4096, "state").or_raise();
  device->fill(whole(state, 4096), 0).or_raise();
  Ticket last = device->download({state, 0, 64}).or_raise();
  for (int i = 0; i < 30; ++i) step(*device, state, &last);
  const test::AllocationCounter allocations;
  for (int i = 0; i < 100; ++i) step(*device, state, &last);
  EXPECT_EQ(allocations.count(), 0u);
  device->release(state);
}

TEST_F(SteadyAllocation, ASteadyStepAllocatesNothingOnTheRecordingThread) {
  expect_no_allocation(nullptr);
}

TEST_F(SteadyAllocation, TracingASteadyStepAllocatesNothingEither) {
  TraceRecorder trace;
  expect_no_allocation(&trace);
}

TEST_F(SteadyAllocation, NorDoesATraceThatIsFull) {
  TraceRecorder trace(100);
  expect_no_allocation(&trace);
  EXPECT_GT(trace.dropped(), 0u);
}

}  // namespace
}  // namespace millrace
