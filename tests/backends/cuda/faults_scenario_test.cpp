// Scenarios of things that go wrong on the fake driver: kernels that end the context, launches that
// are refused, memory that is not there, no driver. B15, B16, I8 of the design's lists.
#include "backends/cuda/cuda_suite.h"
#include "device/allocate.h"

namespace millrace::cuda {
namespace {

using testing::add;
using testing::values_of;
using testing::whole;

using LostDevice = HeldCudaSuite;
using RefusedLaunch = HeldCudaSuite;
using RefusedMemory = HeldCudaSuite;
using Absence = HeldCudaSuite;

constexpr WaitSite kResize{WaitReason::Resize, "test.resize"};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(LostDevice, IsReportedOnceInFullWithTheWorkThatMayBeToBlame) {  // B15, I8
  const BufferId t = holding(Values(4, 1));
  const Ticket before = device->download(whole(t, 16)).or_raise();
  wait(device->submit()).or_raise();
  fake->fault_kernel(1, Status::IllegalAddress);
  hold();
  const uint32_t line = __LINE__ + 1;
  for (int i = 0; i < 20; ++i) add(*device, whole(t, 16), 1).or_raise();
  const Ticket after = device->download(whole(t, 16)).or_raise();
  fake->release();
  const auto first = wait(after.point());
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.error().code, ErrorCode::DeviceLost);
  const std::string& message = first.error().message;
  EXPECT_TRUE(contains(message, "CUDA_ERROR_ILLEGAL_ADDRESS (700)")) << message;
  EXPECT_TRUE(contains(message, "add_u32 queued at ")) << message;
  EXPECT_TRUE(contains(message, "faults_scenario_test.cpp:" + std::to_string(line))) << message;
  EXPECT_TRUE(contains(message, "and 12 more")) << message;
  EXPECT_TRUE(contains(message, "check")) << message;
  EXPECT_TRUE(before.ready());
  EXPECT_FALSE(after.ready()) << "a lost device gave a value";
  const auto second = wait(after.point());
  ASSERT_FALSE(second.ok());
  EXPECT_TRUE(contains(second.error().message, "stopped for good")) << second.error().message;
  EXPECT_EQ(add(*device, whole(t, 16), 1).error().code, ErrorCode::DeviceLost);
  EXPECT_EQ(device->allocate(1 << 22, "more").error().code, ErrorCode::DeviceLost);
  device->release(t);
}

TEST_F(LostDevice, InCheckModeNamesTheKernelAndItsSite) {
  open(",check");
  const BufferId t = holding(Values(4, 1));
  fake->fault_kernel(2, Status::LaunchFailed);
  hold();
  add(*device, whole(t, 16), 1).or_raise();
  add(*device, whole(t, 16), 1).or_raise();
  const Ticket before = device->download(whole(t, 16)).or_raise();
  const uint32_t line = __LINE__ + 1;
  add(*device, whole(t, 16), 1).or_raise();
  for (int i = 0; i < 50; ++i) add(*device, whole(t, 16), 1).or_raise();
  expect_no_stop();
  fake->release();
  const auto result = wait(device->submit());
  ASSERT_FALSE(result.ok());
  const std::string& message = result.error().message;
  EXPECT_TRUE(contains(message, "add_u32 queued at ")) << message;
  EXPECT_TRUE(contains(message, "faults_scenario_test.cpp:" + std::to_string(line))) << message;
  EXPECT_FALSE(contains(message, "more")) << message;
  ASSERT_TRUE(before.ready());
  EXPECT_EQ(values_of(before), Values(4, 3));
  device->release(t);
}

TEST_F(LostDevice, LeavesTheProcessAbleToOpenAnother) {
  const BufferId t = holding({1});
  fake->fault_kernel(0, Status::IllegalAddress);
  add(*device, whole(t, 4), 1).or_raise();
  EXPECT_FALSE(wait(device->submit()).ok());
  device->release(t);
  open("");
  const BufferId next = holding({4});
  EXPECT_EQ(testing::read_blocking(*device, whole(next, 4)), Values{4});
  device->release(next);
}

TEST_F(LostDevice, WithWorkThatTheDriverDoesNotHaveYetEndsAllTheSame) {
  open(",depth=4");
  const BufferId t = holding({1});
  fake->fault_kernel(0, Status::IllegalAddress);
  hold();
  for (int i = 0; i < 100; ++i) add(*device, whole(t, 4), 1).or_raise();
  const Ticket ticket = device->download(whole(t, 4)).or_raise();
  fake->release();
  EXPECT_FALSE(wait(ticket.point()).ok());
  EXPECT_EQ(device->queue().queued, 0u);
  EXPECT_FALSE(ticket.ready());
  device->release(t);
}

TEST_F(RefusedLaunch, NamesTheKernelAndItsSiteAndLeavesEarlierWorkValid) {
  const BufferId t = holding(Values(4, 1));
  add(*device, whole(t, 16), 1).or_raise();
  const Ticket before = device->download(whole(t, 16)).or_raise();
  fake->refuse_launch(0, Status::OutOfResources);
  const uint32_t line = __LINE__ + 1;
  const auto refused = add(*device, whole(t, 16), 1);
  ASSERT_FALSE(refused.ok());
  const std::string& message = refused.error().message;
  EXPECT_TRUE(contains(message, "kernel add_u32 queued at ")) << message;
  EXPECT_TRUE(contains(message, "faults_scenario_test.cpp:" + std::to_string(line))) << message;
  EXPECT_FALSE(wait(device->submit()).ok());
  ASSERT_TRUE(before.ready());
  EXPECT_EQ(values_of(before), Values(4, 2));
  device->release(t);
}

TEST_F(RefusedMemory, OnceIsServedByAnotherTryAndTwiceIsATypedError) {  // B16
  const BufferId t = holding({1});
  fake->fail_allocations(0, 2);  // the backend's own second try belongs to the first
  EXPECT_TRUE(device->allocate(1 << 20, "first").ok());
  fake->fail_allocations(0, 8);
  const auto refused = allocate_blocking(*device, 5 << 20, "second", kResize);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  EXPECT_TRUE(contains(refused.error().message, "5.0 MiB asked for 'second'"))
      << refused.error().message;
  fake->fail_allocations(0, 0);
  add(*device, whole(t, 4), 1).or_raise();
  EXPECT_EQ(testing::read_blocking(*device, whole(t, 4)), Values{2});
  device->release(t);
}

TEST_F(RefusedMemory, WhileOpeningIsAnErrorThatLeavesNothingBehind) {
  device = nullptr;
  const fake::Counts before = fake->counts();
  for (uint64_t skip = 0; skip < 2; ++skip) {
    fake->fail_allocations(skip, 100);
    const auto refused = open_device("cuda:0");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory) << refused.error().message;
    EXPECT_EQ(fake->counts().live_pinned, before.live_pinned);
    EXPECT_EQ(fake->counts().retained, before.retained);
    EXPECT_EQ(fake->counts().modules, before.modules);
  }
}

TEST_F(Absence, OfDevicesGivesAnEmptyListAndAnErrorThatSaysSo) {
  device = nullptr;
  fake->set_devices(0);
  EXPECT_TRUE(list_devices().empty());
  const auto opened = open_device("cuda:0");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::Usage);
  EXPECT_TRUE(contains(opened.error().message, "this machine has 0 CUDA devices"))
      << opened.error().message;
}

TEST_F(Absence, OfADriverGivesAnEmptyListAndAnErrorThatSaysSo) {
  device = nullptr;
  const std::string library = std::getenv("MILLRACE_CUDA_LIBRARY");
  setenv("MILLRACE_CUDA_LIBRARY", "libnowhere-at-all.so.1", 1);
  const bool none = list_devices().empty();
  const auto opened = open_device("cuda:0");
  setenv("MILLRACE_CUDA_LIBRARY", library.c_str(), 1);
  EXPECT_TRUE(none);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::Usage);
  EXPECT_TRUE(contains(opened.error().message, "no CUDA driver is installed"))
      << opened.error().message;
}

TEST_F(Absence, OfTheDeviceAskedForNamesHowManyThereAre) {
  const auto opened = open_device("cuda:7");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::Usage);
  EXPECT_TRUE(contains(opened.error().message, "no device cuda:7")) << opened.error().message;
}

}  // namespace
}  // namespace millrace::cuda
