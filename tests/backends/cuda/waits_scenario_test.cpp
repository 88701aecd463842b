// Scenarios in which trainers wait and this backend does not, on a fake device that stands still:
// nothing here may stop the host, neither in the ledger nor in a call that real drivers stop for.
// B and I numbers are those of the design's lists (BACKENDS.md).
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "backends/cuda/cuda_suite.h"
#include "device/random_program.h"
#include "support/allocation_counter.h"

namespace millrace::cuda {
namespace {

using testing::add;
using testing::bytes_of;
using testing::values_of;
using testing::whole;

using Recording = HeldCudaSuite;
using Batches = HeldCudaSuite;
using Staging = HeldCudaSuite;
using Memory = HeldCudaSuite;
using Closing = HeldCudaSuite;

// --- Recording (I1, I3, I6, I7) ---

TEST_F(Recording, OfEveryVerbReturnsWhileTheDeviceStandsStill) {
  const BufferId a = holding({1, 2, 3, 4}), b = holding(Values(4, 0));
  hold();
  const Point before = device->poll();
  add(*device, whole(a, 16), 10).or_raise();
  for (int i = 0; i < 1500; ++i) {  // more than a driver queues
    device->copy(whole(b, 16), whole(a, 16)).or_raise();
    device->fill({a, 0, 4}, 5).or_raise();
    device->copy({a, 8, 8}, {b, 0, 8}).or_raise();
    add(*device, whole(b, 16), 1).or_raise();
  }
  device->submit();
  expect_no_stop();
  EXPECT_EQ(device->poll(), before) << "the device was to stand still";
  EXPECT_EQ(device->queue().queued, 6001u);
  EXPECT_LE(fake->counts().queued, 512u) << "the driver's queue is filled to where it stops";
  const Ticket ticket = device->download(whole(a, 16)).or_raise();
  expect_no_stop();
  run_everything();
  EXPECT_EQ(values_of(ticket), (Values{5, 12, 5, 12}));
  device->release(a);
  device->release(b);
}

TEST_F(Recording, IntoARecycledBlockThatAQueuedKernelStillReadsReturnsAtOnce) {  // B1
  const BufferId old_owner = holding(Values(16, 5)), seen = buffer(64);
  hold();
  add(*device, whole(old_owner, 64), 1).or_raise();
  device->copy(whole(seen, 64), whole(old_owner, 64)).or_raise();
  const uint64_t reserved = device->memory().reserved_bytes;
  device->release(old_owner);
  const BufferId new_owner = buffer(64);
  ASSERT_EQ(device->memory().reserved_bytes, reserved) << "the block was not recycled";
  device->upload(whole(new_owner, 64), bytes_of(Values(16, 9))).or_raise();
  add(*device, whole(new_owner, 64), 1).or_raise();
  const Ticket old_values = device->download(whole(seen, 64)).or_raise();
  const Ticket new_values = device->download(whole(new_owner, 64)).or_raise();
  expect_no_stop();
  run_everything();
  EXPECT_EQ(values_of(old_values), Values(16, 6));
  EXPECT_EQ(values_of(new_values), Values(16, 10));
  device->release(seen);
  device->release(new_owner);
}

TEST_F(Recording, ThreeUploadsOntoATensorInUseAreSeenInOrderByTheKernelsBetween) {  // B2
  const BufferId t = holding(Values(4, 1)), seen = buffer(48);
  hold();
  for (uint32_t i = 1; i <= 3; ++i) {
    Values values(4, 100 * i);
    device->upload(whole(t, 16), bytes_of(values)).or_raise();
    values.assign(4, 77);  // the source is the caller's again
    add(*device, whole(t, 16), i).or_raise();
    device->copy({seen, 16 * (i - 1), 16}, whole(t, 16)).or_raise();
  }
  const Ticket ticket = device->download(whole(seen, 48)).or_raise();
  expect_no_stop();
  run_everything();
  const Values found = values_of(ticket);
  EXPECT_EQ(Values({found[0], found[4], found[8]}), (Values{101, 202, 303}));
  device->release(t);
  device->release(seen);
}

TEST_F(Recording, ARingOfResultsThatIsDrainedLateLosesNoSlot) {  // B9
  constexpr uint32_t kSlots = 8, kSteps = 10 * kSlots;
  const BufferId ring = holding(Values(kSlots, 0)), metric = holding({0});
  std::vector<Ticket> unread;
  hold();
  for (uint32_t step = 0; step < kSteps; ++step) {
    add(*device, whole(metric, 4), 1).or_raise();
    device->copy({ring, 4 * (step % kSlots), 4}, whole(metric, 4)).or_raise();
    unread.push_back(device->download({ring, 4 * (step % kSlots), 4}).or_raise());
    EXPECT_FALSE(unread.back().ready());
  }
  expect_no_stop();
  run_everything();
  for (uint32_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(unread[step].ready());
    EXPECT_EQ(unread[step].as<uint32_t>(), step + 1);
  }
  device->release(ring);
  device->release(metric);
}

TEST_F(Recording, OfRandomProgramsNeverStopsAndGivesEverySnapshotItsValue) {  // I2, I6, I7
  for (const char* fields : {",staging=4096", ",batch=1,staging=4096", ",depth=8"}) {
    open(fields);
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      hold();
      {
        testing::RandomProgram program(*device, seed);
        program.run();
        program.snapshot_all();
        expect_no_stop();
        run_everything();
        program.check();
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(Recording, OfASteadyStepAllocatesNothingOnTheHost) {
  if (!test::AllocationCounter::works()) GTEST_SKIP() << "no counter under ThreadSanitizer";
  device = testing::open_or_die("cuda:0");  // the argument checks allocate
  const BufferId state = holding(Values(1024, 0));
  Ticket last = device->download({state, 0, 64}).or_raise();
  const auto step = [&] {
    const uint32_t numbers[4] = {1, 2, 3, 4};
    const BufferId temporary = device->allocate(5000, "temporary").or_raise();
    device->fill(whole(temporary, 5000), 1).or_raise();
    device->upload({state, 0, 16}, std::as_bytes(std::span(numbers))).or_raise();
    device->copy({temporary, 0, 64}, {state, 0, 64}).or_raise();
    const Ticket ticket = device->download({temporary, 0, 64}).or_raise();
    device->release(temporary);
    // No wait: the ledger's first row of a site allocates, in whatever step first has to block.
    while (device->poll() < last.point()) {
    }
    last = ticket;
  };
  for (int i = 0; i < 50; ++i) step();
  const uint64_t blocks = fake->counts().allocations;
  const test::AllocationCounter allocations;
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(allocations.count(), 0u);
  EXPECT_EQ(fake->counts().allocations, blocks) << "a steady step took memory from the driver";
  device->release(state);
}

// --- Batches: points pass where events are ---

TEST_F(Batches, OfOneCommandGiveEveryPointItsOwnMoment) {  // I6
  open(",batch=1");
  const BufferId t = holding({0});
  hold();
  const Point before = device->poll();
  for (uint32_t i = 0; i < 10; ++i) add(*device, whole(t, 4), 1).or_raise();
  fake->run(4);
  wait(before + 4).or_raise();
  EXPECT_EQ(device->poll(), before + 4);
  EXPECT_EQ(device->queue().queued, 6u);
  run_everything();
  device->release(t);
}

TEST_F(Batches, ThatAreOpenAreClosedByAPollAndByAWait) {
  const BufferId t = holding({0});
  hold();
  const Point before = device->poll();
  add(*device, whole(t, 4), 1).or_raise();
  EXPECT_EQ(device->poll(), before);
  fake->run(1);
  while (device->poll() < before + 1) {
  }
  add(*device, whole(t, 4), 1).or_raise();
  fake->release();
  wait(before + 2).or_raise();
  EXPECT_EQ(device->poll(), before + 2);
  device->release(t);
}

TEST_F(Batches, AreBoundedSoThatAHostThatNeverSubmitsStillLearnsOfPoints) {
  open(",batch=8");
  const BufferId t = holding({0});
  hold();
  for (uint32_t i = 0; i < 40; ++i) add(*device, whole(t, 4), 1).or_raise();
  fake->release();
  while (device->queue().queued > 8) {
  }
  device->release(t);
}

// --- Staging (B3, I2) ---

TEST_F(Staging, FarPastTheRingGrowsInsteadOfWaitingAndIsUsedAgain) {  // B3
  open(",staging=4096");
  const BufferId t = buffer(64 * 1024);
  uint64_t allocations = 0;
  for (uint32_t round = 0; round < 3; ++round) {
    hold();
    device->fill(whole(t, 64 * 1024), 0).or_raise();
    for (uint32_t i = 0; i < 64; ++i) {
      device->upload({t, 1024 * i, 1024}, bytes_of(Values(256, 100 * round + i))).or_raise();
    }
    const Ticket ticket = device->download(whole(t, 64 * 1024)).or_raise();
    EXPECT_EQ(n_waits(), device->ledger().count(WaitReason::Test));
    run_everything();
    const Values found = values_of(ticket);
    for (uint32_t i = 0; i < 64 * 256; ++i) ASSERT_EQ(found[i], 100 * round + i / 256) << i;
    if (round > 0) {
      EXPECT_EQ(fake->counts().allocations, allocations);
    }
    allocations = fake->counts().allocations;
  }
  device->release(t);
}

TEST_F(Staging, PartlyReclaimedIsNeverRewrittenBeforeItsCopyRan) {  // I2
  open(",staging=4096,batch=1");
  const BufferId t = holding(Values(64, 0)), seen = buffer(40 * 256);
  hold();
  for (uint32_t i = 0; i < 40; ++i) {
    device->upload(whole(t, 256), bytes_of(Values(64, i))).or_raise();
    device->copy({seen, 256 * i, 256}, whole(t, 256)).or_raise();
    // The device falls behind by one command at each turn, so the ring's end chases its beginning.
    if (i % 2 == 0) continue;
    const Point target = device->poll() + 2;
    fake->run(2);
    wait(target).or_raise();
  }
  const Ticket ticket = device->download(whole(seen, 40 * 256)).or_raise();
  run_everything();
  const Values found = values_of(ticket);
  for (uint32_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], i / 64) << i;
  device->release(t);
  device->release(seen);
}

// --- Memory ---

TEST_F(Memory, ThatIsAllocatedTrimmedAndFreedWhileWorkIsQueuedStopsNothing) {
  open(",memory=8388608");
  const BufferId idle = buffer(2 << 20), used = buffer(2 << 20);
  hold();
  device->fill(whole(used, 2 << 20), 1).or_raise();
  device->release(idle);
  const BufferId larger = buffer(5 << 20);  // only after the idle block went back to the driver
  device->fill(whole(larger, 5 << 20), 2).or_raise();
  expect_no_stop();
  run_everything();
  device->release(used);
  device->release(larger);
}

TEST_F(Memory, OfADriverWithoutPoolsServesTheSameWork) {
  device = nullptr;
  fake->set_memory_pools(false);
  open("");
  const BufferId t = holding({1, 2});
  EXPECT_EQ(testing::read_blocking(*device, whole(t, 8)), (Values{1, 2}));
  device->release(t);
}

// --- Closing (B14, I10) ---

/// What is logged while it lives.
class LogCapture {
 public:
  LogCapture() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>(
        "capture", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_level(spdlog::level::debug);
    spdlog::set_default_logger(logger);
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  bool contains(const std::string& part) const {
    return text_.str().find(part) != std::string::npos;
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(Closing, OfADeviceThatStallsIsBoundedAndNamesWhatItDropped) {
  leaks = true;
  open(",close=30,depth=4");
  const BufferId t = holding({0});
  hold();
  const uint32_t line = __LINE__ + 1;
  for (int i = 0; i < 20; ++i) add(*device, whole(t, 4), 1).or_raise();
  const Ticket in_driver = device->download(whole(t, 4)).or_raise();
  const LogCapture log;
  device = nullptr;
  EXPECT_TRUE(log.contains("21 commands did not end within 30 ms")) << log.text();
  EXPECT_TRUE(log.contains("waits_scenario_test.cpp:" + std::to_string(line))) << log.text();
  EXPECT_TRUE(log.contains("buffer 'test' of 4 bytes was never released")) << log.text();
  EXPECT_FALSE(in_driver.ready());
  fake->reset();
  EXPECT_FALSE(in_driver.ready()) << "a dropped snapshot has no value";
  // The process goes on: another device opens and works.
  open("");
  const BufferId next = holding({6});
  EXPECT_EQ(testing::read_blocking(*device, whole(next, 4)), Values{6});
  device->release(next);
}

TEST_F(Closing, ReportsBuffersThatWereNeverReleased) {
  const LogCapture log;
  buffer(4096, "forgotten");
  device = nullptr;
  EXPECT_TRUE(log.contains("buffer 'forgotten' of 4096 bytes was never released")) << log.text();
}

}  // namespace
}  // namespace millrace::cuda
