// Scenarios of things that go wrong: closing with work in flight (B14), faults (B15), no memory
// (B16), a lost device. The numbers are those of BACKENDS.md, Appendix B; I8 and I10 are
// invariants.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "device/allocate.h"
#include "device/held_device.h"

namespace millrace::testing {
namespace {

using Values = std::vector<uint32_t>;

constexpr WaitSite kResize{WaitReason::Resize, "test.resize"};
constexpr WaitSite kTestSite{WaitReason::Test, "test.wait"};
constexpr uint64_t kMiB = uint64_t{1} << 20;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

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
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

/// Devices that go on when waited for.
class Fault : public ::testing::TestWithParam<HeldDevice> {
 protected:
  std::unique_ptr<Device> device = make_checked(open_or_die(GetParam().id));
};
using Closing = Fault;
constexpr HeldDevice kWaitingDevices[] = {
    {"CpuLazy", "cpu:2,lazy"},
    {"SimulatedHeld", "simulated:hold,checks"},
};
INSTANTIATE_TEST_SUITE_P(On, Fault, ::testing::ValuesIn(kWaitingDevices),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(On, Closing, ::testing::ValuesIn(kWaitingDevices),
                         [](const auto& info) { return std::string(info.param.name); });

// --- Faults of kernels (B15, I8) ---

TEST_P(Fault, OfAKernelNamesItAndItsSiteOnceAndCountsWhatItSuppressed) {  // B15
  const BufferId t = device->allocate(16, "t").or_raise();
  device->fill(whole(t, 16), 4).or_raise();
  const uint32_t line = __LINE__ + 1;
  add(*device, {t, 0, 15}, 1).or_raise();  // no whole number of words
  for (int i = 0; i < 50; ++i) add(*device, whole(t, 16), 1).or_raise();
  const Ticket ticket = device->download(whole(t, 16)).or_raise();
  const auto first = device->wait_blocking(ticket.point(), kTestSite);
  ASSERT_FALSE(first.ok());
  const std::string& message = first.error().message;
  EXPECT_TRUE(contains(message, "kernel add_u32 queued at ")) << message;
  EXPECT_TRUE(contains(message, "faults_scenario_test.cpp:" + std::to_string(line))) << message;
  EXPECT_TRUE(contains(message, "50 commands queued after it had no effect")) << message;
  EXPECT_TRUE(device->wait_blocking(device->submit(), kTestSite).ok()) << "reported twice";
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), Values(4, 4)) << "work behind the fault had an effect";
  const auto more = add(*device, whole(t, 16), 1);
  ASSERT_FALSE(more.ok()) << "a stopped device took work";
  EXPECT_TRUE(contains(more.error().message, "stopped for good")) << more.error().message;
  device->release(t);
}

TEST_P(Fault, ThatIsFollowedByAnotherIsTheOneReported) {
  const BufferId t = device->allocate(16, "t").or_raise();
  const uint32_t line = __LINE__ + 1;
  add(*device, {t, 0, 15}, 1).or_raise();
  add(*device, {t, 0, 14}, 1).or_raise();
  const auto result = device->wait_blocking(device->submit(), kTestSite);
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(contains(result.error().message, "test.cpp:" + std::to_string(line) + " "))
      << result.error().message;
  device->release(t);
}

TEST_P(Fault, ThatNobodyAskedForIsLoggedAtTheEnd) {
  const LogCapture log;
  const BufferId t = device->allocate(16, "t").or_raise();
  add(*device, {t, 0, 15}, 1).or_raise();
  device->release(t);
  device = nullptr;
  EXPECT_TRUE(contains(log.text(), "kernel add_u32 queued at ")) << log.text();
}

TEST(InjectedFault, OfTheThirdKernelNamesThatKernelAndItsSite) {  // B15
  auto opened = simulated::open_simulated({}).or_raise();
  Device& device = *opened.device;
  const BufferId t = device.allocate(4, "t").or_raise();
  device.fill(whole(t, 4), 0).or_raise();
  opened.control.fail_kernel(2);
  add(device, whole(t, 4), 1).or_raise();
  add(device, whole(t, 4), 1).or_raise();
  const uint32_t line = __LINE__ + 1;
  add(device, whole(t, 4), 1).or_raise();
  for (int i = 0; i < 50; ++i) add(device, whole(t, 4), 1).or_raise();
  const Ticket ticket = device.download(whole(t, 4)).or_raise();
  const auto result = device.wait_blocking(ticket.point(), kTestSite);
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(contains(result.error().message, "test.cpp:" + std::to_string(line) + " "))
      << result.error().message;
  EXPECT_TRUE(contains(result.error().message, "50 commands")) << result.error().message;
  EXPECT_EQ(ticket.as<uint32_t>(), 2u);
  device.release(t);
}

TEST(LostDevice, IsATypedErrorOfEveryLaterCallAndGivesNoValues) {
  auto opened = simulated::open_simulated({}).or_raise();
  Device& device = *opened.device;
  const BufferId t = device.allocate(4, "t").or_raise();
  device.fill(whole(t, 4), 0).or_raise();
  add(device, whole(t, 4), 1).or_raise();
  const Ticket before = device.download(whole(t, 4)).or_raise();
  const uint32_t line = __LINE__ + 1;
  add(device, whole(t, 4), 1).or_raise();
  const Ticket after = device.download(whole(t, 4)).or_raise();
  opened.control.lose_device(3);
  const auto first = device.wait_blocking(after.point(), kTestSite);
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.error().code, ErrorCode::DeviceLost);
  EXPECT_TRUE(contains(first.error().message, "test.cpp:" + std::to_string(line)))
      << first.error().message;
  EXPECT_TRUE(before.ready());
  EXPECT_FALSE(after.ready()) << "a lost device gave a value";
  EXPECT_EQ(device.wait_blocking(after.point(), kTestSite).error().code, ErrorCode::DeviceLost);
  EXPECT_EQ(add(device, whole(t, 4), 1).error().code, ErrorCode::DeviceLost);
  device.release(t);
}

// --- Memory (B16) ---

/// Devices of 4 MiB that go on when waited for.
class SmallMemory : public ::testing::TestWithParam<HeldDevice> {
 protected:
  /// A free block of 2 MiB that queued work still uses.
  void leave_block_in_flight() {
    const BufferId a = device->allocate(2 * kMiB, "first").or_raise();
    device->fill(whole(a, 2 * kMiB), 1).or_raise();
    device->release(a);
  }

  std::unique_ptr<Device> device =
      make_checked(open_or_die(std::string(GetParam().id) + ",memory=4194304,staging=65536"));
};
INSTANTIATE_TEST_SUITE_P(On, SmallMemory, ::testing::ValuesIn(kWaitingDevices),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(SmallMemory, HeldByQueuedWorkIsRefusedWithoutAWait) {
  leave_block_in_flight();
  const auto refused = device->allocate(3 * kMiB, "second");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  EXPECT_TRUE(device->ledger().records().empty()) << "allocate() stopped the host";
}

TEST_P(SmallMemory, HeldByQueuedWorkIsWaitedForOnceTrimmedAndHandedOut) {  // B16
  leave_block_in_flight();
  const auto second = allocate_blocking(*device, 3 * kMiB, "second", kResize);
  ASSERT_TRUE(second.ok()) << second.error().message;
  const auto records = device->ledger().records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].reason, WaitReason::Resize);
  EXPECT_EQ(records[0].count, 1u);
  EXPECT_LT(device->memory().reserved_bytes, 4 * kMiB) << "the free block was not given back";
  device->release(second.value());
}

TEST_P(SmallMemory, ThatIsTrulyUsedUpIsATypedErrorWithWhatWasAskedAndWhatIsInUse) {  // B16
  const BufferId a = device->allocate(2 * kMiB, "first").or_raise();
  device->fill(whole(a, 2 * kMiB), 1).or_raise();
  const auto refused = allocate_blocking(*device, 3 * kMiB, "second", kResize);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  const std::string& message = refused.error().message;
  EXPECT_TRUE(contains(message, "3.0 MiB asked for 'second', 2.0 MiB in use")) << message;
  EXPECT_EQ(device->ledger().count(WaitReason::Resize), 1u);
  // The state is as it was: the device goes on.
  add(*device, whole(a, 16), 1).or_raise();
  EXPECT_EQ(read_blocking(*device, whole(a, 16)), Values(4, 2));
  device->release(a);
}

TEST(RefusedMemory, OnceCostsOneResizeWaitAndTwiceIsATypedError) {  // B16
  auto opened = simulated::open_simulated({}).or_raise();
  Device& device = *opened.device;
  const BufferId t = device.allocate(16, "t").or_raise();
  device.fill(whole(t, 16), 1).or_raise();
  opened.control.refuse_memory();
  const auto first = allocate_blocking(device, 1000, "first", kResize);
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_EQ(device.ledger().records().size(), 1u);
  EXPECT_EQ(device.ledger().count(WaitReason::Resize), 1u);
  opened.control.refuse_memory(0, 2);
  const auto second = allocate_blocking(device, 5000, "second", kResize);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::OutOfMemory);
  EXPECT_TRUE(contains(second.error().message, "asked for 'second'")) << second.error().message;
  EXPECT_TRUE(device.allocate(5000, "third").ok()) << "the refusal outlived its count";
}

TEST(RefusedMemory, OfTheNthRequestLeavesTheOthersAlone) {
  auto opened = simulated::open_simulated({}).or_raise();
  opened.control.refuse_memory(2);
  EXPECT_TRUE(opened.device->allocate(1000, "a").ok());
  EXPECT_TRUE(opened.device->allocate(1000, "b").ok());
  EXPECT_FALSE(opened.device->allocate(1000, "c").ok());
  EXPECT_TRUE(opened.device->allocate(1000, "d").ok());
}

// --- Closing (B14, I10) ---

TEST_P(Closing, WithWorkInFlightRunsItAndFillsItsTickets) {  // B14
  const BufferId t = device->allocate(4, "t").or_raise();
  device->fill(whole(t, 4), 0).or_raise();
  for (int i = 0; i < 1000; ++i) add(*device, whole(t, 4), 1).or_raise();
  const Ticket ticket = device->download(whole(t, 4)).or_raise();
  device->release(t);
  device = nullptr;
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(ticket.as<uint32_t>(), 1000u);
}

TEST_P(Closing, ReportsBuffersThatWereNeverReleased) {  // B14
  const LogCapture log;
  const BufferId t = device->allocate(4096, "forgotten").or_raise();
  device->fill(whole(t, 4096), 0).or_raise();
  device = nullptr;
  EXPECT_TRUE(contains(log.text(), "buffer 'forgotten' of 4096 bytes was never released"))
      << log.text();
}

TEST(ClosingForGood, OfADeviceThatStallsIsBoundedAndNamesWhatItDropped) {  // B14, I10
  auto opened = simulated::open_simulated({.clock = simulated::Clock::Stall,
                                           .poison = true,
                                           .check_host = true,
                                           .check_ranges = true})
                    .or_raise();
  Device& device = *opened.device;
  const BufferId t = device.allocate(16, "kept").or_raise();
  const BufferId freed = device.allocate(16, "freed").or_raise();
  device.fill(whole(t, 16), 0).or_raise();
  const uint32_t line = __LINE__ + 1;
  add(device, whole(freed, 16), 1).or_raise();
  for (int i = 0; i < 100; ++i) add(device, whole(t, 16), 1).or_raise();
  device.release(freed);
  const Ticket ticket = device.download(whole(t, 16)).or_raise();
  opened.device = nullptr;
  const simulated::ClosingReport report = opened.control.closing();
  ASSERT_TRUE(report.closed);
  EXPECT_EQ(report.ran, 0u);
  EXPECT_EQ(report.dropped, 103u);
  ASSERT_GE(report.dropped_commands.size(), 2u);
  EXPECT_TRUE(contains(report.dropped_commands[1], "kernel add_u32 queued at "))
      << report.dropped_commands[1];
  EXPECT_TRUE(contains(report.dropped_commands[1], "test.cpp:" + std::to_string(line)));
  ASSERT_EQ(report.leaks.size(), 1u);
  EXPECT_TRUE(contains(report.leaks[0], "'kept'")) << report.leaks[0];
  ASSERT_EQ(report.waits.size(), 1u);
  EXPECT_EQ(report.waits[0].reason, WaitReason::Shutdown);
  EXPECT_FALSE(ticket.ready()) << "a dropped snapshot has no value";
  EXPECT_EQ(opened.control.run_all(), 0u) << "a closed device ran something";
}

}  // namespace
}  // namespace millrace::testing
