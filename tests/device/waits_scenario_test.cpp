// Scenarios in which trainers wait and Millrace does not, on devices that stand still: uploads,
// staging, slots, reads under readers, snapshots, releases, rings of metrics. B1 to B9 are the
// numbers of the design's list (BACKENDS.md, Appendix B); I1 to I7 its invariants.
#include "device/held_device.h"

namespace millrace::testing {
namespace {

using Values = std::vector<uint32_t>;

using Upload = HeldScenario;
using Staging = HeldScenario;
using Slots = HeldScenario;
using Reading = HeldScenario;
using DeviceToDevice = HeldScenario;
using Release = HeldScenario;
using MetricsRing = HeldScenario;
MILLRACE_ON_HELD_DEVICES(Upload);
MILLRACE_ON_HELD_DEVICES(Staging);
MILLRACE_ON_HELD_DEVICES(Slots);
MILLRACE_ON_HELD_DEVICES(Reading);
MILLRACE_ON_HELD_DEVICES(DeviceToDevice);
MILLRACE_ON_HELD_DEVICES(Release);
MILLRACE_ON_HELD_DEVICES(MetricsRing);

// --- Uploads (I1) ---

TEST_P(Upload, IntoARecycledBlockThatAQueuedKernelStillReadsReturnsAtOnce) {  // B1
  const BufferId old_owner = settled(Values(16, 5));
  const BufferId seen = buffer(64);
  add(*device, whole(old_owner, 64), 1).or_raise();
  device->copy(whole(seen, 64), whole(old_owner, 64)).or_raise();
  const uint64_t reserved = device->memory().reserved_bytes;
  device->release(old_owner);
  const BufferId new_owner = buffer(64);
  ASSERT_EQ(device->memory().reserved_bytes, reserved) << "the block was not recycled";
  device->upload(whole(new_owner, 64), bytes_of(Values(16, 9))).or_raise();
  add(*device, whole(new_owner, 64), 1).or_raise();
  EXPECT_EQ(n_waits(), 0u);
  EXPECT_EQ(device->poll(), 0u) << "the device was to stand still";
  const Ticket new_values = device->download(whole(new_owner, 64)).or_raise();
  EXPECT_EQ(read_after_all(seen, 64), Values(16, 6)) << "the old kernel must see the old bytes";
  EXPECT_EQ(values_of(new_values), Values(16, 10)) << "the next kernel must see the new bytes";
}

TEST_P(Upload, ThreeTimesOntoATensorInUseAreSeenInOrderByTheKernelsBetween) {  // B2
  const BufferId t = settled(Values(4, 1));
  const BufferId seen = buffer(64);
  add(*device, whole(t, 16), 1).or_raise();
  device->copy({seen, 0, 16}, whole(t, 16)).or_raise();
  for (uint32_t i = 1; i <= 3; ++i) {
    Values values(4, 100 * i);
    device->upload(whole(t, 16), bytes_of(values)).or_raise();
    values.assign(4, 77);  // the source is the caller's again
    add(*device, whole(t, 16), i).or_raise();
    device->copy({seen, 16 * i, 16}, whole(t, 16)).or_raise();
  }
  EXPECT_EQ(n_waits(), 0u);
  const Values found = read_after_all(seen, 64);
  EXPECT_EQ(Values({found[0], found[4], found[8], found[12]}), (Values{2, 101, 202, 303}));
}

TEST_P(Upload, OfASmallPartLeavesWhatQueuedWorkDoesToTheRest) {
  const BufferId t = settled(Values{1, 2, 3, 4});
  add(*device, whole(t, 16), 10).or_raise();
  device->upload({t, 4, 8}, bytes_of(Values{7, 8})).or_raise();
  EXPECT_EQ(n_waits(), 0u);
  EXPECT_EQ(read_after_all(t, 16), (Values{11, 7, 8, 14}));
}

TEST_P(Upload, NextToARangeInUseIsThereAtOnce) {
  const BufferId t = settled(Values{1, 2, 3, 4});
  add(*device, {t, 0, 8}, 10).or_raise();
  device->upload({t, 8, 8}, bytes_of(Values{30, 40})).or_raise();
  EXPECT_EQ(device->queue().queued, 1u) << "the upload was to need no queue";
  EXPECT_EQ(read_after_all(t, 16), (Values{11, 12, 30, 40}));
}

// --- Staging (B3, I2) ---

TEST_P(Staging, FarPastTheRingGrowsInsteadOfWaitingAndCorruptsNothing) {  // B3
  open(",staging=4096");
  const BufferId t = buffer(64 * 1024);
  for (uint32_t round = 0; round < 3; ++round) {
    device->fill(whole(t, 64 * 1024), 0).or_raise();
    for (uint32_t i = 0; i < 64; ++i) {
      device->upload({t, 1024 * i, 1024}, bytes_of(Values(256, 100 * round + i))).or_raise();
    }
    EXPECT_EQ(device->queue().queued, 65u) << "every upload was to be queued";
    EXPECT_EQ(device->ledger().count(WaitReason::StagingFull), 0u);
    const Values found = read_after_all(t, 64 * 1024);
    for (uint32_t i = 0; i < 64 * 256; ++i) ASSERT_EQ(found[i], 100 * round + i / 256) << i;
  }
  EXPECT_EQ(device->ledger().count_except_pacing(), device->ledger().count(WaitReason::Test));
}

TEST_P(Staging, OfBytesLargerThanTheRingWaitsForNothing) {
  open(",staging=4096");
  const BufferId t = settled(Values(16384, 1));
  add(*device, whole(t, 65536), 1).or_raise();
  device->upload(whole(t, 65536), bytes_of(Values(16384, 3))).or_raise();
  device->upload(whole(t, 65536), bytes_of(Values(16384, 4))).or_raise();
  EXPECT_EQ(n_waits(), 0u);
  EXPECT_EQ(read_after_all(t, 65536), Values(16384, 4));
}

TEST_P(Staging, PartlyReclaimedIsNeverRewrittenBeforeItsCopyRan) {  // I2
  open(",staging=4096");
  const BufferId t = settled(Values(64, 0));
  const BufferId seen = buffer(40 * 256);
  add(*device, whole(t, 256), 0).or_raise();
  for (uint32_t i = 0; i < 40; ++i) {
    device->upload(whole(t, 256), bytes_of(Values(64, i))).or_raise();
    device->copy({seen, 256 * i, 256}, whole(t, 256)).or_raise();
    // The device falls behind by one command at each turn, so the ring's end chases its beginning.
    if (i % 2 == 1) run_commands_blocking(*device, 2);
  }
  const Values found = read_after_all(seen, 40 * 256);
  for (uint32_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], i / 64) << i;
}

// --- Slots (B5) ---

TEST_P(Slots, WithStorageOfTheirOwnAreReadWhileTheOtherIsInUse) {  // B5
  const BufferId a = settled(Values(4, 1)), b = settled(Values(4, 2));
  add(*device, whole(a, 16), 1).or_raise();
  const Ticket ticket = device->download(whole(b, 16)).or_raise();
  ASSERT_TRUE(ticket.ready()) << "reading slot b waited for the kernel on slot a";
  EXPECT_EQ(values_of(ticket), Values(4, 2));
  EXPECT_EQ(n_waits(), 0u);
}

TEST_P(Slots, InOneStorageAreIndependentByTheirByteRanges) {  // B5
  const BufferId both = settled(Values{1, 1, 1, 1, 2, 2, 2, 2});
  add(*device, {both, 0, 16}, 1).or_raise();
  const Ticket ticket = device->download({both, 16, 16}).or_raise();
  ASSERT_TRUE(ticket.ready()) << "reading slot b waited for the kernel on slot a";
  EXPECT_EQ(values_of(ticket), Values(4, 2));
  device->upload({both, 16, 16}, bytes_of(Values(4, 5))).or_raise();
  EXPECT_EQ(device->queue().queued, 1u) << "writing slot b was queued behind the kernel on slot a";
  EXPECT_EQ(n_waits(), 0u);
  EXPECT_EQ(read_after_all(both, 32), (Values{2, 2, 2, 2, 5, 5, 5, 5}));
}

TEST_P(Slots, ThatOverlapByOneWordAreNotTakenForIndependent) {
  const BufferId both = settled(Values{1, 1, 1, 1, 2, 2, 2, 2});
  add(*device, {both, 0, 20}, 1).or_raise();
  const Ticket ticket = device->download({both, 16, 16}).or_raise();
  EXPECT_FALSE(ticket.ready()) << "the first word of slot b is still to be written";
  run_everything_blocking(*device);
  EXPECT_EQ(values_of(ticket), (Values{3, 2, 2, 2}));
}

// --- Reading (B6, B7, I6) ---

TEST_P(Reading, ATensorThatQueuedKernelsOnlyReadIsReadyAtOnce) {  // B6
  const BufferId t = buffer(16), other = buffer(16);
  device->fill(whole(t, 16), 6).or_raise();
  run_everything_blocking(*device);
  device->copy(whole(other, 16), whole(t, 16)).or_raise();
  const uint64_t waits = n_waits();
  const Ticket ticket = device->download(whole(t, 16)).or_raise();
  ASSERT_TRUE(ticket.ready()) << "a read waited for another reader";
  EXPECT_EQ(values_of(ticket), Values(4, 6));
  EXPECT_EQ(device->queue().queued, 1u);
  EXPECT_EQ(n_waits(), waits);
}

TEST_P(Reading, ASnapshotKeepsItsValueWhenTheTensorIsOverwrittenAndFreed) {  // B7
  const BufferId t = settled(Values(4, 1));
  add(*device, whole(t, 16), 10).or_raise();
  const Ticket ticket = device->download(whole(t, 16)).or_raise();
  add(*device, whole(t, 16), 100).or_raise();
  device->upload(whole(t, 16), bytes_of(Values(4, 7))).or_raise();
  device->release(t);
  const BufferId next = buffer(16);
  device->fill(whole(next, 16), 3).or_raise();
  EXPECT_EQ(n_waits(), 0u);
  EXPECT_FALSE(ticket.ready());
  run_everything_blocking(*device);
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), Values(4, 11));
}

TEST_P(Reading, TicketsOfOneTensorGiveItsValueAtEachPlaceInQueueOrder) {  // I6
  const BufferId t = settled(Values(1, 0));
  std::vector<Ticket> tickets;
  for (uint32_t i = 0; i < 20; ++i) {
    tickets.push_back(device->download(whole(t, 4)).or_raise());
    add(*device, whole(t, 4), 1).or_raise();
  }
  EXPECT_EQ(n_waits(), 0u);
  for (uint32_t i = 0; i < 20; ++i) {
    run_commands_blocking(*device, tickets[i].point() - device->poll());
    ASSERT_TRUE(tickets[i].ready()) << i;
    EXPECT_EQ(values_of(tickets[i]), Values{i});
    if (i + 1 < 20) {
      EXPECT_FALSE(tickets[i + 1].ready()) << "a value from before its time";
    }
  }
}

// --- Copies and fills (I3) ---

TEST_P(DeviceToDevice, WorkOfEveryKindIsQueuedBehindWhatStandsStill) {  // I3
  const BufferId a = settled(Values{1, 2, 3, 4}), b = settled(Values(4, 0));
  add(*device, whole(a, 16), 10).or_raise();
  for (int i = 0; i < 200; ++i) {
    device->copy(whole(b, 16), whole(a, 16)).or_raise();
    device->fill({a, 0, 4}, 5).or_raise();
    device->copy({a, 8, 8}, {b, 0, 8}).or_raise();
    add(*device, whole(b, 16), 1).or_raise();
  }
  EXPECT_EQ(n_waits(), 0u);
  EXPECT_EQ(device->poll(), 0u) << "the device was to stand still";
  EXPECT_EQ(device->queue().queued, 801u);
  EXPECT_EQ(read_after_all(a, 16), (Values{5, 12, 5, 12}));
}

TEST_P(DeviceToDevice, ACountWrittenByQueuedWorkBoundsALaunchWithoutTheHost) {
  const BufferId t = settled(Values(4, 0)), count = settled(Values{1});
  add(*device, whole(count, 4), 2).or_raise();
  add(*device, whole(t, 16), 5, whole(count, 4)).or_raise();
  add(*device, whole(count, 4), 1).or_raise();
  EXPECT_EQ(n_waits(), 0u);
  EXPECT_EQ(read_after_all(t, 16), (Values{5, 5, 5, 0}));
}

// --- Releases (I7) ---

TEST_P(Release, OfEverythingThatQueuedWorkUsesIsSafeAtAnyTime) {  // I7
  const BufferId result = settled(Values(4, 0));
  for (uint32_t i = 0; i < 10; ++i) {
    const BufferId a = settled(Values(4, i)), b = buffer(16);
    add(*device, whole(a, 16), 100).or_raise();
    device->copy(whole(b, 16), whole(a, 16)).or_raise();
    device->release(a);
    device->copy({result, 4 * (i % 4), 4}, {b, 0, 4}).or_raise();
    device->release(b);
  }
  EXPECT_EQ(n_waits(), 0u);
  EXPECT_EQ(read_after_all(result, 16), (Values{108, 109, 106, 107}));
}

TEST_P(Release, OfABlockGuardsItByItsOwnLastUseAndNotByTheNewestWork) {
  const BufferId busy = settled(Values(4, 1)), idle = settled(Values(4, 2));
  add(*device, whole(busy, 16), 1).or_raise();
  device->release(idle);
  const BufferId next = buffer(16);
  device->upload(whole(next, 16), bytes_of(Values(4, 3))).or_raise();
  EXPECT_EQ(device->queue().queued, 1u) << "the idle block was taken for one in use";
  const Ticket ticket = device->download(whole(next, 16)).or_raise();
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), Values(4, 3));
}

// --- A ring of results that the host drains late (B9) ---

TEST_P(MetricsRing, DrainedLateLosesNoSlotAndNeverStopsTheHost) {  // B9
  constexpr uint32_t kSlots = 8, kSteps = 10 * kSlots;
  const BufferId ring = settled(Values(kSlots, 0)), metric = settled(Values{0});
  std::vector<Ticket> unread;
  Values drained;
  uint64_t waits = 0;
  for (uint32_t step = 0; step < kSteps; ++step) {
    add(*device, whole(metric, 4), 1).or_raise();
    device->copy({ring, 4 * (step % kSlots), 4}, whole(metric, 4)).or_raise();
    unread.push_back(device->download({ring, 4 * (step % kSlots), 4}).or_raise());
    EXPECT_EQ(n_waits(), waits) << "step " << step << " stopped the host";
    if (step % (2 * kSlots) != 2 * kSlots - 1) continue;
    // Two rings' worth are queued before the first of them runs.
    run_everything_blocking(*device);
    waits = n_waits();
    for (const Ticket& ticket : unread) {
      ASSERT_TRUE(ticket.ready());
      drained.push_back(ticket.as<uint32_t>());
    }
    unread.clear();
  }
  ASSERT_EQ(drained.size(), kSteps);
  for (uint32_t step = 0; step < kSteps; ++step) EXPECT_EQ(drained[step], step + 1);
}

}  // namespace
}  // namespace millrace::testing
