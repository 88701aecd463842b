// The CPU device: order, snapshots, staging, faults, memory limits and the end of the device. The
// scenario numbers are those of the design's list of waits that must not happen.
#include "device/device_helpers.h"

namespace millrace {
namespace {

using testing::add;
using testing::bytes_of;
using testing::open_or_die;
using testing::read_blocking;
using testing::values_of;
using testing::whole;
using Values = std::vector<uint32_t>;

constexpr WaitSite kTestSite{WaitReason::Test, "test.wait"};

TEST(CpuDevice, RunsUploadsKernelsCopiesAndFillsInOrder) {
  const auto device = open_or_die("cpu:2");
  const BufferId a = device->allocate(16, "a").or_raise();
  const BufferId b = device->allocate(16, "b").or_raise();
  device->upload(whole(a, 16), bytes_of(Values{1, 2, 3, 4})).or_raise();
  add(*device, whole(a, 16), 10).or_raise();
  device->copy({b, 4, 8}, {a, 0, 8}).or_raise();
  device->fill({b, 0, 4}, 7).or_raise();
  device->fill({b, 12, 4}, 0x01020304).or_raise();
  EXPECT_EQ(read_blocking(*device, whole(b, 16)), (Values{7, 11, 12, 0x01020304}));
  device->release(a);
  device->release(b);
}

TEST(CpuDevice, LaunchReturnsBeforeTheWorkRan) {
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId a = device->allocate(16, "a").or_raise();
  device->upload(whole(a, 16), bytes_of(Values{1, 2, 3, 4})).or_raise();
  add(*device, whole(a, 16), 1).or_raise();
  const Point first = device->submit();
  add(*device, whole(a, 16), 1).or_raise();
  const Ticket ticket = device->download(whole(a, 16)).or_raise();
  EXPECT_FALSE(ticket.ready());
  EXPECT_EQ(device->poll(), 0u);
  EXPECT_EQ(device->queue().queued, 3u);
  device->wait_blocking(first, kTestSite).or_raise();
  EXPECT_EQ(device->poll(), first);
  EXPECT_FALSE(ticket.ready());
  device->wait_blocking(ticket.point(), kTestSite).or_raise();
  EXPECT_EQ(values_of(ticket), (Values{3, 4, 5, 6}));
  device->release(a);
}

TEST(CpuDevice, UploadIntoARecycledBlockNeitherWaitsNorDisturbsItsLastUser) {  // B1
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId old_owner = device->allocate(64, "old").or_raise();
  const BufferId seen = device->allocate(64, "seen").or_raise();
  device->upload(whole(old_owner, 64), bytes_of(Values(16, 5))).or_raise();
  device->copy(whole(seen, 64), whole(old_owner, 64)).or_raise();
  const uint64_t reserved = device->memory().reserved_bytes;
  device->release(old_owner);
  const BufferId new_owner = device->allocate(64, "new").or_raise();
  ASSERT_EQ(device->memory().reserved_bytes, reserved) << "the block was not recycled";
  EXPECT_FALSE(new_owner == old_owner);
  device->upload(whole(new_owner, 64), bytes_of(Values(16, 9))).or_raise();
  add(*device, whole(new_owner, 64), 1).or_raise();
  EXPECT_TRUE(device->ledger().records().empty());
  EXPECT_EQ(read_blocking(*device, whole(seen, 64)), Values(16, 5));
  EXPECT_EQ(read_blocking(*device, whole(new_owner, 64)), Values(16, 10));
  device->release(seen);
  device->release(new_owner);
}

TEST(CpuDevice, UploadsToARangeInUseAreSeenInOrder) {  // B2
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId t = device->allocate(16, "t").or_raise();
  const BufferId seen = device->allocate(48, "seen").or_raise();
  add(*device, whole(t, 16), 1).or_raise();
  for (uint32_t i = 0; i < 3; ++i) {
    Values values(4, 100 * i);
    device->upload(whole(t, 16), bytes_of(values)).or_raise();
    values.assign(4, 77);  // the source may change on return
    add(*device, whole(t, 16), i).or_raise();
    device->copy({seen, 16 * i, 16}, whole(t, 16)).or_raise();
  }
  EXPECT_TRUE(device->ledger().records().empty());
  EXPECT_EQ(read_blocking(*device, whole(seen, 48)),
            (Values{0, 0, 0, 0, 101, 101, 101, 101, 202, 202, 202, 202}));
  device->release(t);
  device->release(seen);
}

TEST(CpuDevice, AFullStagingRingGrowsAndWaitsForNothing) {  // B3
  const auto device = open_or_die("cpu:2,lazy,staging=4096");
  const BufferId t = device->allocate(16384, "t").or_raise();
  for (int round = 0; round < 3; ++round) {
    add(*device, whole(t, 16384), 0).or_raise();
    for (uint32_t i = 0; i < 16; ++i) {
      device->upload({t, 1024 * i, 1024}, bytes_of(Values(256, i + round))).or_raise();
    }
    EXPECT_EQ(device->ledger().count(WaitReason::StagingFull), 0u);
    EXPECT_EQ(device->queue().queued, 17u);
    const Values values = read_blocking(*device, whole(t, 16384));
    for (uint32_t i = 0; i < 16; ++i) {
      EXPECT_EQ(values[256 * i], i + round);
      EXPECT_EQ(values[256 * i + 255], i + round);
    }
  }
  // Rounds two and three use the blocks of round one.
  EXPECT_LE(device->memory().peak_reserved_bytes, 4096u + 16384 + 13 * 1024);
  device->release(t);
}

TEST(CpuDevice, AnUploadTooLargeForTheRingWaitsForNothing) {
  const auto device = open_or_die("cpu:2,lazy,staging=4096");
  const BufferId t = device->allocate(65536, "t").or_raise();
  add(*device, whole(t, 65536), 0).or_raise();
  device->upload(whole(t, 65536), bytes_of(Values(16384, 3))).or_raise();
  device->upload(whole(t, 65536), bytes_of(Values(16384, 4))).or_raise();
  EXPECT_TRUE(device->ledger().records().empty());
  EXPECT_EQ(read_blocking(*device, whole(t, 65536)), Values(16384, 4));
  device->release(t);
}

TEST(CpuDevice, ReadingOneRangeIgnoresQueuedWritersOfAnother) {  // B5
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId t = device->allocate(32, "t").or_raise();
  device->upload(whole(t, 32), bytes_of(Values{1, 2, 3, 4, 5, 6, 7, 8})).or_raise();
  add(*device, {t, 0, 16}, 1).or_raise();
  const Ticket ticket = device->download({t, 16, 16}).or_raise();
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), (Values{5, 6, 7, 8}));
  device->release(t);
}

TEST(CpuDevice, ATicketUnderReadersIsReadyWithoutThem) {  // B6
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId t = device->allocate(16, "t").or_raise();
  const BufferId other = device->allocate(16, "other").or_raise();
  device->fill(whole(t, 16), 6).or_raise();
  device->wait_blocking(device->submit(), kTestSite).or_raise();
  device->copy(whole(other, 16), whole(t, 16)).or_raise();
  const Ticket ticket = device->download(whole(t, 16)).or_raise();
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), Values(4, 6));
  EXPECT_EQ(device->queue().queued, 1u);
  EXPECT_EQ(device->ledger().count(WaitReason::Test), 1u);
  device->release(t);
  device->release(other);
}

TEST(CpuDevice, ATicketKeepsItsValueWhenTheSourceIsOverwrittenAndFreed) {  // B7
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId t = device->allocate(16, "t").or_raise();
  device->fill(whole(t, 16), 1).or_raise();
  const Ticket ticket = device->download(whole(t, 16)).or_raise();
  device->fill(whole(t, 16), 2).or_raise();
  device->release(t);
  const BufferId next = device->allocate(16, "next").or_raise();
  device->fill(whole(next, 16), 3).or_raise();
  device->wait_blocking(device->submit(), kTestSite).or_raise();
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), Values(4, 1));
  device->release(next);
}

TEST(CpuDevice, ATicketOutlivesItsDevice) {
  auto device = open_or_die("cpu:1");
  const BufferId t = device->allocate(16, "t").or_raise();
  device->fill(whole(t, 16), 8).or_raise();
  const Ticket ticket = device->download(whole(t, 16)).or_raise();
  device->release(t);
  device.reset();
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), Values(4, 8));
}

TEST(CpuDevice, ADeviceSideCountBoundsTheThreads) {
  const auto device = open_or_die("cpu:2");
  const BufferId t = device->allocate(16, "t").or_raise();
  const BufferId count = device->allocate(8, "count").or_raise();
  device->fill(whole(t, 16), 0).or_raise();
  device->fill(whole(count, 8), 1).or_raise();
  add(*device, {count, 4, 4}, 1).or_raise();
  add(*device, whole(t, 16), 5, {count, 4, 4}).or_raise();
  EXPECT_EQ(read_blocking(*device, whole(t, 16)), (Values{5, 5, 0, 0}));
  device->release(t);
  device->release(count);
}

TEST(CpuDevice, TheLedgerHoldsExactlyTheWaitsThatHappened) {
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId t = device->allocate(16, "t").or_raise();
  device->fill(whole(t, 16), 0).or_raise();
  const Point first = device->submit();
  add(*device, whole(t, 16), 1).or_raise();
  const Point second = device->submit();
  const WaitSite pacing{WaitReason::Pacing, "test.pacing"};
  device->wait_blocking(first, pacing).or_raise();
  device->wait_blocking(first, pacing).or_raise();  // has passed: no wait
  device->wait_blocking(second, pacing).or_raise();
  device->wait_blocking(0, kTestSite).or_raise();
  const auto records = device->ledger().records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].site, "test.pacing");
  EXPECT_EQ(records[0].count, 2u);
  EXPECT_NE(records[0].where.find("tests/backends/cpu/cpu_device_test.cpp:"), std::string::npos);
  EXPECT_EQ(device->ledger().count_except_pacing(), 0u);
  device->release(t);
}

TEST(CpuDevice, AWaitForAPointThatIsNotQueuedIsAnError) {
  const auto device = open_or_die("cpu:1");
  const auto result = device->wait_blocking(5, kTestSite);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("point 5"), std::string::npos);
}

TEST(CpuDevice, AFaultIsReportedOnceWithItsKernelAndSite) {  // B15
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId t = device->allocate(16, "t").or_raise();
  device->fill(whole(t, 16), 4).or_raise();
  const uint32_t line = __LINE__ + 1;
  add(*device, {t, 0, 15}, 1).or_raise();
  for (int i = 0; i < 50; ++i) add(*device, whole(t, 16), 1).or_raise();
  const Ticket ticket = device->download(whole(t, 16)).or_raise();
  const auto result = device->wait_blocking(device->submit(), kTestSite);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("add_u32"), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().message.find("cpu_device_test.cpp:" + std::to_string(line)),
            std::string::npos)
      << result.error().message;
  EXPECT_TRUE(device->wait_blocking(device->submit(), kTestSite).ok()) << "reported twice";
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), Values(4, 4)) << "work behind a fault had an effect";
  EXPECT_FALSE(add(*device, whole(t, 16), 1).ok()) << "a stopped device takes no work";
  device->release(t);
}

TEST(CpuDevice, MemoryPastTheLimitIsRefusedWithTheFigures) {  // B16
  const auto device = open_or_die("cpu:1,lazy,staging=65536,memory=4194304");
  const BufferId a = device->allocate(2 << 20, "big").or_raise();
  const auto refused = device->allocate(3 << 20, "images");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(refused.error().message.find("3.0 MiB asked for 'images'"), std::string::npos)
      << refused.error().message;
  device->release(a);
  // The freed block is too small to serve, so it has to be given back first.
  EXPECT_TRUE(device->allocate(3 << 20, "images").ok());
  const MemoryStats stats = device->memory();
  EXPECT_EQ(stats.in_use_bytes, 3u << 20);
  EXPECT_EQ(stats.by_label.at(0).label, "big");
  EXPECT_EQ(stats.by_label.at(0).bytes, 0u);
  EXPECT_EQ(stats.by_label.at(0).peak_bytes, 2u << 20);
}

TEST(CpuDevice, ClosingWithWorkQueuedRunsItAndEnds) {  // B14
  for (const char* id : {"cpu:2", "cpu:2,lazy"}) {
    auto device = open_or_die(id);
    const BufferId t = device->allocate(4096, "t").or_raise();
    device->fill(whole(t, 4096), 0).or_raise();
    for (int i = 0; i < 1000; ++i) add(*device, whole(t, 4096), 1).or_raise();
    const Ticket ticket = device->download(whole(t, 4096)).or_raise();
    device.reset();  // `t` is leaked on purpose
    ASSERT_TRUE(ticket.ready());
    EXPECT_EQ(ticket.as<uint32_t>(), 1000u);
  }
}

TEST(CpuDevice, ManyCommandsQueuedAtOnceKeepTheirOrder) {
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId t = device->allocate(4, "t").or_raise();
  device->fill(whole(t, 4), 0).or_raise();
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 5000; ++i) add(*device, whole(t, 4), i).or_raise();
    device->wait_blocking(device->submit(), kTestSite).or_raise();
  }
  EXPECT_EQ(read_blocking(*device, whole(t, 4)), Values{3u * 4999 * 5000 / 2});
  device->release(t);
}

TEST(CpuDevice, ParallelKernelsGiveTheSameAsSerialOnes) {
  Values results[2];
  for (int threads = 1; threads <= 2; ++threads) {
    const auto device = open_or_die("cpu:" + std::to_string(threads));
    const uint64_t bytes = 4 * 100'000;
    const BufferId t = device->allocate(bytes, "t").or_raise();
    Values input(100'000);
    for (uint32_t i = 0; i < input.size(); ++i) input[i] = i * 2654435761u;
    device->upload(whole(t, bytes), bytes_of(input)).or_raise();
    for (int i = 0; i < 20; ++i) add(*device, whole(t, bytes), 3).or_raise();
    results[threads - 1] = read_blocking(*device, whole(t, bytes));
    EXPECT_EQ(results[threads - 1][9], input[9] + 60);
    device->release(t);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(CpuDevice, CountsLaunchesAndTimes) {
  const auto device = open_or_die("cpu:1,lazy");
  const BufferId t = device->allocate(1 << 20, "t").or_raise();
  for (int i = 0; i < 10; ++i) add(*device, whole(t, 1 << 20), 1).or_raise();
  EXPECT_EQ(device->queue().launches, 10u);
  EXPECT_EQ(device->queue().busy_ns, 0u);
  device->wait_blocking(device->submit(), kTestSite).or_raise();
  EXPECT_GT(device->queue().busy_ns, 0u);
  EXPECT_EQ(device->queue().queued, 0u);
  device->release(t);
}

TEST(CpuDevice, RejectsTooManyBindingsAndStaleBuffers) {
  const auto device = open_or_die("cpu:1");
  const BufferId t = device->allocate(16, "t").or_raise();
  const std::vector<Binding> bindings(25, {whole(t, 16), Access::Read});
  EXPECT_FALSE(
      device->launch({.kernel = KernelId::add_u32, .threads = 1, .bindings = bindings}).ok());
  device->release(t);
  EXPECT_FALSE(device->fill(whole(t, 16), 0).ok());
  const BufferId next = device->allocate(16, "t").or_raise();
  EXPECT_FALSE(device->fill(whole(t, 16), 0).ok()) << "a stale id reaches its slot's next buffer";
  device->release(next);
}

}  // namespace
}  // namespace millrace
