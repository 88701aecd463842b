// The Vulkan device: order, snapshots, large buffers, memory limits, times and the end of the
// device, all under the validation layer. What standing still shows is in tests/device/*scenario*.
#include "backends/vulkan/vulkan_suite.h"
#include "device/trace.h"
#include "kernels/gpu_plan.h"
#include "support/allocation_counter.h"

namespace millrace::vulkan {
namespace {

using testing::add;
using testing::bytes_of;
using testing::values_of;
using testing::whole;

class VulkanDevice : public VulkanSuite {};

TEST_F(VulkanDevice, SaysWhatItIs) {
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.id, "vulkan:0");
  EXPECT_FALSE(info.name.empty());
  EXPECT_NE(info.driver.find("Vulkan 1."), std::string::npos) << info.driver;
  EXPECT_GT(info.memory_bytes, 0u);
}

TEST_F(VulkanDevice, AnIndexThatDoesNotExistIsAUsageErrorWithTheDevicesThereAre) {
  const auto refused = open_device("vulkan:77");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Usage);
  EXPECT_NE(refused.error().message.find("vulkan:0"), std::string::npos) << refused.error().message;
}

TEST_F(VulkanDevice, RunsUploadsKernelsCopiesAndFillsInOrder) {
  const BufferId a = holding({1, 2, 3, 4}), b = buffer(16);
  add(*device, whole(a, 16), 10).or_raise();
  device->copy({b, 4, 8}, {a, 0, 8}).or_raise();
  device->fill({b, 0, 4}, 7).or_raise();
  device->fill({b, 12, 4}, 0x01020304).or_raise();
  EXPECT_EQ(read(b, 16), (Values{7, 11, 12, 0x01020304}));
  device->release(a);
  device->release(b);
}

TEST_F(VulkanDevice, TakesRangesThatAreNoWholeWords) {
  const BufferId a = buffer(16), b = buffer(16);
  const std::vector<uint8_t> bytes{1, 2, 3, 4, 5};
  device->fill(whole(a, 16), 0).or_raise();
  device->fill(whole(b, 16), 0).or_raise();
  device->upload({a, 3, 5}, bytes_of(bytes)).or_raise();
  device->copy({b, 1, 7}, {a, 2, 7}).or_raise();
  EXPECT_EQ(read(b, 16), (Values{0x02010000, 0x00050403, 0, 0}));
  device->release(a);
  device->release(b);
}

TEST_F(VulkanDevice, ALaunchIsBoundedByItsThreadsAndByItsCountOnTheDevice) {
  const BufferId t = holding(Values(1000, 0)), count = holding({0, 300});
  add(*device, {t, 0, 4 * 999}, 1).or_raise();
  add(*device, whole(t, 4000), 10, {count, 4, 4}).or_raise();
  add(*device, whole(t, 4000), 100, {count, 0, 4}).or_raise();
  Values wanted(1000, 1);
  for (int i = 0; i < 300; ++i) wanted[i] = 11;
  wanted[999] = 0;
  EXPECT_EQ(read(t, 4000), wanted);
  device->release(t);
  device->release(count);
}

TEST_F(VulkanDevice, WalksTheGroupsThatAreMoreThanOneDispatchHas) {
  constexpr uint64_t kN = 65'535 * 256 + 1000;  // past the grid's limit, in 64 MiB
  const BufferId t = buffer(4 * kN);
  device->fill(whole(t, 4 * kN), 5).or_raise();
  add(*device, whole(t, 4 * kN), 1).or_raise();
  const Ticket first = device->download({t, 0, 4}).or_raise();
  const Ticket last = device->download({t, 4 * (kN - 1), 4}).or_raise();
  wait(last.point()).or_raise();
  EXPECT_EQ(first.as<uint32_t>(), 6u);
  EXPECT_EQ(last.as<uint32_t>(), 6u);
  device->release(t);
}

TEST_F(VulkanDevice, KernelsReachAllOfABufferAbove128MiB) {
  // Lavapipe binds storage buffers up to 128 MiB only; addresses have no such limit.
  constexpr uint64_t kBytes = (uint64_t{160} << 20) + 4096;
  const BufferId t = buffer(kBytes);
  const Slice tail{t, kBytes - 4096, 4096};
  device->fill(tail, 1).or_raise();
  device->fill({t, 0, 4096}, 1).or_raise();
  add(*device, tail, 41).or_raise();
  const Ticket far = device->download(tail).or_raise();
  const Ticket near = device->download({t, 0, 4096}).or_raise();
  wait(near.point()).or_raise();
  EXPECT_EQ(values_of(far), Values(1024, 42));
  EXPECT_EQ(values_of(near), Values(1024, 1));
  device->release(t);
}

TEST_F(VulkanDevice, ABufferPastTheLimitsOfTheDeviceIsRefusedByItsNameSizeAndLimit) {
  // A budget that lets the driver be asked for what no device has in one piece.
  open(",memory=140737488355328");
  const auto refused = device->allocate(uint64_t{1} << 46, "instances");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  for (const char* part : {"'instances'", "70368744177664", "maxMemoryAllocationSize"}) {
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
  const BufferId t = holding({1, 2});
  EXPECT_EQ(read(t, 8), (Values{1, 2})) << "the device goes on";
  device->release(t);
}

TEST_F(VulkanDevice, AKernelWithoutAPlanIsAnErrorThatNamesItAndItsSite) {
  size_t id = 0;
  while (id < static_cast<size_t>(KernelId::kCount) &&
         !gpu_passes(static_cast<KernelId>(id)).empty()) {
    ++id;
  }
  if (id == static_cast<size_t>(KernelId::kCount)) GTEST_SKIP() << "every kernel has a plan";
  const KernelId kernel = static_cast<KernelId>(id);
  const auto refused = testing::open_or_die("vulkan:0")->launch({.kernel = kernel, .threads = 1});
  ASSERT_FALSE(refused.ok());
  const std::string& message = refused.error().message;
  EXPECT_NE(message.find(std::string("launch of ") + kernel_row(kernel).name), std::string::npos);
  EXPECT_NE(message.find("no GPU code"), std::string::npos) << message;
  EXPECT_NE(message.find("vulkan_device_test.cpp:"), std::string::npos) << message;
}

TEST_F(VulkanDevice, TheHostNeverTouchesUnmappedMemoryAndAllStaysInOrder) {
  open(",unmapped");
  const BufferId t = holding({1, 2, 3, 4});
  EXPECT_EQ(device->queue().queued + device->poll(), 1u) << "the upload was to be queued";
  for (uint32_t i = 0; i < 5; ++i) {
    add(*device, whole(t, 16), 1).or_raise();
    device->upload({t, 4 * (i % 4), 4}, bytes_of(Values{100 * i})).or_raise();
  }
  const Ticket ticket = device->download(whole(t, 16)).or_raise();
  EXPECT_EQ(ticket.point(), device->submit());
  wait(ticket.point()).or_raise();
  EXPECT_EQ(values_of(ticket), (Values{400, 103, 202, 301}));
  device->release(t);
}

TEST_F(VulkanDevice, KernelCopyAndSnapshotChainsSeeEachOther) {
  const BufferId a = holding(Values(1024, 0)), b = holding(Values(1024, 0));
  std::vector<Ticket> tickets;
  for (uint32_t i = 0; i < 200; ++i) {
    add(*device, whole(a, 4096), 1).or_raise();
    device->copy(whole(b, 4096), whole(a, 4096)).or_raise();
    add(*device, whole(b, 4096), 1000).or_raise();
    tickets.push_back(device->download({b, 4 * i, 4}).or_raise());
  }
  EXPECT_EQ(n_waits(), 0u);
  wait(tickets.back().point()).or_raise();
  for (uint32_t i = 0; i < 200; ++i) ASSERT_EQ(tickets[i].as<uint32_t>(), 1001 + i) << i;
  device->release(a);
  device->release(b);
}

TEST_F(VulkanDevice, ThousandsOfLaunchesBeforeAHeldDeviceWaitForNothing) {
  device = make_checked(testing::open_or_die("vulkan:0,lazy"));
  const BufferId t = holding(Values(256, 0));
  for (int i = 0; i < 3000; ++i) add(*device, whole(t, 1024), 1).or_raise();
  const Ticket ticket = device->download(whole(t, 1024)).or_raise();
  EXPECT_EQ(n_waits(), 0u);
  EXPECT_EQ(device->poll(), 0u) << "the device was to stand still";
  EXPECT_EQ(device->queue().queued, 3001u);
  wait(ticket.point()).or_raise();
  EXPECT_EQ(values_of(ticket), Values(256, 3000));
  device->release(t);
}

TEST_F(VulkanDevice, ABatchIsClosedBySubmitPollAndWaitsAlike) {
  const BufferId t = holding({0});
  add(*device, whole(t, 4), 1).or_raise();
  const Point first = device->submit();
  add(*device, whole(t, 4), 1).or_raise();
  wait(first).or_raise();
  EXPECT_EQ(device->submit(), first + 1);
  add(*device, whole(t, 4), 1).or_raise();
  wait(first + 2).or_raise();  // of an open batch
  EXPECT_EQ(device->poll(), first + 2);
  EXPECT_EQ(read(t, 4), Values{3});
  device->release(t);
}

TEST_F(VulkanDevice, PastItsLimitAllocationGivesBackFreeBlocksAndThenIsATypedError) {
  open(",memory=4194304,staging=65536");
  const BufferId a = buffer(2 << 20, "images");
  const auto refused = device->allocate(3 << 20, "images");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(refused.error().message.find("3.0 MiB asked for 'images'"), std::string::npos)
      << refused.error().message;
  device->release(a);
  const BufferId b = buffer(3 << 20, "images");
  EXPECT_EQ(device->memory().in_use_bytes, 3u << 20);
  device->release(b);
}

TEST_F(VulkanDevice, ClosingWithWorkQueuedRunsItAndEnds) {  // B14
  const BufferId t = holding(Values(1024, 0));
  for (int i = 0; i < 1000; ++i) add(*device, whole(t, 4096), 1).or_raise();
  const Ticket ticket = device->download(whole(t, 4096)).or_raise();
  device = nullptr;  // `t` is leaked on purpose
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(ticket.as<uint32_t>(), 1000u);
}

TEST_F(VulkanDevice, CountsLaunchesAndTimes) {
  const BufferId t = holding(Values(1 << 18, 0));
  for (int i = 0; i < 10; ++i) add(*device, whole(t, 1 << 20), 1).or_raise();
  wait(device->submit()).or_raise();
  const QueueStats stats = device->queue();
  EXPECT_EQ(stats.launches, 10u);
  EXPECT_GT(stats.busy_ns, 0u);
  EXPECT_EQ(stats.queued, 0u);
  device->release(t);
}

TEST_F(VulkanDevice, TheTimeBetweenBatchesWithNothingQueuedIsDry) {
  const BufferId t = holding({0});
  for (int i = 0; i < 100; ++i) {
    add(*device, whole(t, 4), 1).or_raise();
    wait(device->submit()).or_raise();
  }
  EXPECT_GT(device->queue().dry_ns, 0u);
  device->release(t);
}

TEST_F(VulkanDevice, ATraceHoldsEachCommandWhenItRan) {
  TraceRecorder trace;
  device->set_trace(&trace);
  const BufferId t = holding(Values(256, 0));
  for (int i = 0; i < 3; ++i) add(*device, whole(t, 1024), 1).or_raise();
  device->fill(whole(t, 1024), 1).or_raise();
  wait(device->submit()).or_raise();
  device->release(t);
  device = nullptr;
  const std::string json = trace.to_json();
  size_t n_kernels = 0;
  for (size_t at = json.find("\"add_u32\""); at != std::string::npos;
       at = json.find("\"add_u32\"", at + 1)) {
    ++n_kernels;
  }
  EXPECT_EQ(n_kernels, 3u);
  EXPECT_NE(json.find("\"fill\""), std::string::npos);
  EXPECT_NE(json.find("tests/backends/vulkan/vulkan_device_test.cpp:"), std::string::npos) << json;
}

TEST_F(VulkanDevice, ASteadyStepAllocatesNothingOnTheRecordingThread) {
  if (!test::AllocationCounter::works()) GTEST_SKIP() << "no counter under ThreadSanitizer";
  device = testing::open_or_die("vulkan:0");
  const BufferId state = buffer(4096, "state");
  Ticket last = device->download({state, 0, 64}).or_raise();
  const auto step = [&] {
    const uint32_t numbers[4] = {1, 2, 3, 4};
    const BufferId temporary = buffer(5000, "temporary");
    device->fill(whole(temporary, 5000), 1).or_raise();
    device->upload({state, 0, 16}, std::as_bytes(std::span(numbers))).or_raise();
    for (int i = 0; i < 30; ++i) add(*device, whole(state, 4096), 1).or_raise();
    device->copy({temporary, 0, 64}, {state, 0, 64}).or_raise();
    const Ticket ticket = device->download({temporary, 0, 64}).or_raise();
    device->release(temporary);
    device->wait_blocking(last.point(), {WaitReason::Pacing, "test.pacing"}).or_raise();
    last = ticket;
  };
  for (int i = 0; i < 30; ++i) step();
  const test::AllocationCounter allocations;
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(allocations.count(), 0u);
  device->release(state);
}

TEST_F(VulkanDevice, TooManyBindingsAndStaleBuffersAreErrors) {
  const auto bare = testing::open_or_die("vulkan:0");
  const BufferId t = bare->allocate(16, "t").or_raise();
  const std::vector<Binding> bindings(25, {whole(t, 16), Access::Read});
  EXPECT_FALSE(
      bare->launch({.kernel = KernelId::add_u32, .threads = 1, .bindings = bindings}).ok());
  bare->release(t);
  EXPECT_FALSE(bare->fill(whole(t, 16), 0).ok());
  EXPECT_FALSE(bare->wait_blocking(99, {WaitReason::Test, "test.wait"}).ok());
}

}  // namespace
}  // namespace millrace::vulkan
