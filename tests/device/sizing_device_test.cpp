// SizingDevice: the counts of a device without its memory.
#include "device/sizing_device.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kRing = uint64_t{4} << 20;  // as the cpu device has

// What a run does to memory: buffers made and dropped, uploads to buffers in use, copies.
MemoryStats stats_after_work_blocking(Device& device) {
  const auto whole = [](BufferId id, uint64_t bytes) { return Slice{id, 0, bytes}; };
  std::vector<std::byte> host(3 * kMiB);
  BufferId old = device.allocate(3 * kMiB, "kept").or_raise();
  for (int i = 0; i < 5; ++i) {
    const BufferId next = device.allocate((3 + i % 2) * kMiB, "kept").or_raise();
    device.fill(whole(next, 3 * kMiB), 7).or_raise();
    device.copy(whole(next, kMiB), whole(old, kMiB)).or_raise();
    device.upload(whole(next, 3 * kMiB), host).or_raise();
    device.release(old);
    old = next;
  }
  device.wait_blocking(device.submit(), {WaitReason::Test, "test"}).or_raise();
  const BufferId last = device.allocate(64 * kMiB, "last").or_raise();
  device.release(old);
  device.release(last);
  return device.memory();
}

TEST(SizingDevice, ReservesWhatADeviceThatLagsReserves) {
  const auto real = open_device("cpu:1,lazy").or_raise();
  const MemoryStats expected = stats_after_work_blocking(*real);
  SizingDevice sizing(kRing);
  const MemoryStats stats = stats_after_work_blocking(sizing);
  EXPECT_EQ(stats.peak_reserved_bytes, expected.peak_reserved_bytes);
  EXPECT_EQ(stats.peak_in_use_bytes, expected.peak_in_use_bytes);
  EXPECT_EQ(stats.reserved_bytes, expected.reserved_bytes);
}

TEST(SizingDevice, HoldsNoMemory) {
  SizingDevice device(0);
  const uint64_t exbibyte = uint64_t{1} << 60;
  ASSERT_TRUE(device.allocate(exbibyte, "all").ok());
  EXPECT_EQ(device.memory().in_use_bytes, exbibyte);
}

TEST(SizingDevice, CountsDownloads) {
  SizingDevice device(0);
  const BufferId id = device.allocate(kMiB, "x").or_raise();
  const Ticket ticket = device.download({id, 0, 1000}).or_raise();
  EXPECT_EQ(device.downloaded_bytes(), 1000u);
}

TEST(DeviceLimit, IsKeptByAnAllocationFromThenOn) {
  const auto device = open_device("cpu:1").or_raise();
  ASSERT_TRUE(device->allocate(8 * kMiB, "a").ok());
  device->limit_memory(kRing + 9 * kMiB);
  EXPECT_EQ(device->memory().limit_bytes, kRing + 9 * kMiB);
  const auto refused = device->allocate(8 * kMiB, "b");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  EXPECT_TRUE(device->allocate(kMiB, "c").ok());
}

}  // namespace
}  // namespace millrace
