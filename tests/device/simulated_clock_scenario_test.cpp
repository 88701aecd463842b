// The simulated device itself: its clocks, its poison, and that its checks find what they are for.
#include "device/held_device.h"
#include "kernels/tensor_params.h"

namespace millrace::testing {
namespace {

using simulated::Clock;
using simulated::Control;
using simulated::kPoison;
using simulated::Opened;
using simulated::Options;
using Values = std::vector<uint32_t>;

constexpr WaitSite kTestSite{WaitReason::Test, "test.wait"};

Opened open(const Options& options) { return simulated::open_simulated(options).or_raise(); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// --- Clocks ---

TEST(SimulatedClock, AHeldDeviceRunsExactlyTheCommandsThatItIsTold) {
  auto [device, control] = open({});
  const BufferId t = device->allocate(4, "t").or_raise();
  device->fill(whole(t, 4), 0).or_raise();
  for (int i = 0; i < 5; ++i) add(*device, whole(t, 4), 1).or_raise();
  EXPECT_EQ(device->poll(), 0u);
  EXPECT_EQ(control.run(3), 3u);
  EXPECT_EQ(device->poll(), 3u);
  EXPECT_EQ(control.pending().size(), 3u);
  EXPECT_TRUE(contains(control.pending()[0], "kernel add_u32 queued at ")) << control.pending()[0];
  EXPECT_EQ(control.run(100), 3u);
  EXPECT_EQ(device->queue().queued, 0u);
  EXPECT_TRUE(device->ledger().records().empty());
}

TEST(SimulatedClock, AHeldDeviceRunsAsFarAsAWaitAsksAndLedgersTheWait) {
  auto [device, control] = open({});
  const BufferId t = device->allocate(4, "t").or_raise();
  device->fill(whole(t, 4), 0).or_raise();
  const Point first = device->submit();
  add(*device, whole(t, 4), 1).or_raise();
  device->wait_blocking(first, kTestSite).or_raise();
  EXPECT_EQ(device->poll(), first);
  device->wait_blocking(first, kTestSite).or_raise();  // has passed: no wait
  ASSERT_EQ(device->ledger().records().size(), 1u);
  EXPECT_EQ(device->ledger().records()[0].count, 1u);
}

TEST(SimulatedClock, ALaggingDeviceStaysItsBatchesBehindSubmit) {
  auto [device, control] = open({.clock = Clock::Lag, .lag_batches = 2});
  const BufferId t = device->allocate(4, "t").or_raise();
  std::vector<Point> points;
  for (int batch = 0; batch < 6; ++batch) {
    device->fill(whole(t, 4), 1).or_raise();
    device->fill(whole(t, 4), 2).or_raise();
    points.push_back(device->submit());
    device->submit();  // nothing new: no batch
    EXPECT_EQ(device->poll(), batch < 2 ? 0u : points[batch - 2]);
  }
}

TEST(SimulatedClock, RandomProgressIsTheSameForASeedAndDiffersBetweenSeeds) {
  const auto progress = [](uint64_t seed) {
    auto [device, control] = open({.clock = Clock::Random, .seed = seed});
    const BufferId t = device->allocate(4, "t").or_raise();
    Values passed;
    for (int i = 0; i < 50; ++i) {
      device->fill(whole(t, 4), 1).or_raise();
      passed.push_back(static_cast<uint32_t>(control.commands_run()));
    }
    return passed;
  };
  EXPECT_EQ(progress(1), progress(1));
  EXPECT_NE(progress(1), progress(2));
  EXPECT_GT(progress(1).back(), 0u);
}

TEST(SimulatedClock, AnImmediateDeviceLeavesNothingQueued) {
  auto [device, control] = open({.clock = Clock::Immediate});
  const BufferId t = device->allocate(4, "t").or_raise();
  device->fill(whole(t, 4), 7).or_raise();
  EXPECT_EQ(device->queue().queued, 0u);
  const Ticket ticket = device->download(whole(t, 4)).or_raise();
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(ticket.as<uint32_t>(), 7u);
}

TEST(SimulatedClock, AStalledDeviceTurnsAWaitIntoADeadlockThatNamesItsSite) {
  auto [device, control] = open({.clock = Clock::Stall});
  const BufferId t = device->allocate(4, "t").or_raise();
  device->fill(whole(t, 4), 7).or_raise();
  control.run(1);
  device->wait_blocking(1, kTestSite).or_raise();  // has passed
  add(*device, whole(t, 4), 1).or_raise();
  const uint32_t line = __LINE__ + 1;
  const auto result = device->wait_blocking(2, {WaitReason::UserRead, "hidden.wait"});
  ASSERT_FALSE(result.ok());
  const std::string& message = result.error().message;
  EXPECT_TRUE(contains(message, "deadlock: wait 'hidden.wait' (UserRead)")) << message;
  EXPECT_TRUE(contains(message, "test.cpp:" + std::to_string(line))) << message;
  EXPECT_TRUE(contains(message, "kernel add_u32 queued at ")) << message;
  EXPECT_EQ(device->ledger().count(WaitReason::UserRead), 1u) << "the ledger must see it too";
}

TEST(SimulatedClock, UnknownFieldsOfTheIdAreUsageErrorsThatNameThem) {
  const auto device = open_device("simulated:hold,lag=x");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::Usage);
  EXPECT_TRUE(contains(device.error().message, "'lag=x'")) << device.error().message;
}

// --- Poison ---

TEST(SimulatedPoison, FillsFreshAndRecycledMemory) {
  auto [device, control] = open({.poison = true});
  const BufferId a = device->allocate(64, "a").or_raise();
  EXPECT_EQ(read_blocking(*device, whole(a, 64)), Values(16, kPoison));
  device->fill(whole(a, 64), 1).or_raise();
  control.run_all();
  device->release(a);
  const BufferId b = device->allocate(64, "b").or_raise();
  EXPECT_EQ(read_blocking(*device, whole(b, 64)), Values(16, kPoison));
  float value;
  std::memcpy(&value, &kPoison, 4);
  EXPECT_NE(value, value) << "poison must be a NaN";
}

TEST(SimulatedPoison, ReachesABlockInUseOnlyAfterItsLastUser) {
  auto [device, control] = open({.poison = true, .check_host = true});
  const BufferId a = device->allocate(64, "a").or_raise();
  const BufferId seen = device->allocate(64, "seen").or_raise();
  device->fill(whole(a, 64), 1).or_raise();
  device->copy(whole(seen, 64), whole(a, 64)).or_raise();
  device->release(a);
  const BufferId b = device->allocate(64, "b").or_raise();
  const Ticket recycled = device->download(whole(b, 64)).or_raise();
  EXPECT_EQ(read_blocking(*device, whole(seen, 64)), Values(16, 1));
  EXPECT_EQ(values_of(recycled), Values(16, kPoison));
  EXPECT_TRUE(control.problems().empty());
}

// --- Host accesses ---

TEST(SimulatedHostCheck, FindsAnUploadOntoMemoryInUse) {
  auto [device, control] = open({.check_host = true});
  const BufferId t = device->allocate(16, "t").or_raise();
  add(*device, whole(t, 16), 1).or_raise();
  control.forget_hazards();
  device->upload({t, 12, 4}, bytes_of(Values{1})).or_raise();
  ASSERT_EQ(control.problems().size(), 1u);
  EXPECT_TRUE(contains(control.problems()[0], "an upload of 4 bytes")) << control.problems()[0];
  EXPECT_TRUE(contains(control.problems()[0], "kernel add_u32 queued at "));
  const auto result = device->wait_blocking(device->submit(), kTestSite);
  ASSERT_FALSE(result.ok()) << "what a check finds must end the run";
  EXPECT_EQ(result.error().message.find("host access"), 0u) << result.error().message;
}

TEST(SimulatedHostCheck, FindsADownloadOfBytesYetToBeWritten) {
  auto [device, control] = open({.check_host = true});
  const BufferId t = device->allocate(16, "t").or_raise();
  device->fill({t, 0, 8}, 1).or_raise();
  control.forget_hazards();
  EXPECT_TRUE(device->download({t, 8, 8}).ok());
  EXPECT_TRUE(control.problems().empty()) << "the other half is free";
  EXPECT_TRUE(device->download({t, 4, 8}).ok());
  EXPECT_EQ(control.problems().size(), 1u);
}

// --- Ranges of kernels: each wrong kernel stands in for add_u32 on "x" or reduce_chunks on "wr"
// ---

/// What the check says of `body` run with binding 0 (written, 5 words) and binding 1 (read, 3
/// words).
std::string verdict(Access first, kernels::CpuKernel body) {
  auto [device, control] = open({.check_ranges = true});
  control.replace_kernel(KernelId::add_u32, body);
  const BufferId a = device->allocate(64, "a").or_raise();
  const BufferId b = device->allocate(64, "b").or_raise();
  device->fill(whole(a, 64), 10).or_raise();
  device->fill(whole(b, 64), 20).or_raise();
  const Binding bindings[] = {{{a, 16, 20}, first}, {{b, 16, 12}, Access::Read}};
  const AddU32Params params{.value = 1};
  device
      ->launch({.kernel = KernelId::add_u32,
                .threads = 5,
                .bindings = bindings,
                .params = std::as_bytes(std::span(&params, 1))})
      .or_raise();
  const Ticket after_a = device->download(whole(a, 64)).or_raise();
  const Ticket after_b = device->download(whole(b, 64)).or_raise();
  const auto result = device->wait_blocking(device->submit(), kTestSite);
  const Values found = values_of(after_a);
  EXPECT_EQ(Values(found.begin(), found.begin() + 4), Values(4, 10));
  EXPECT_EQ(Values(found.begin() + 9, found.end()), Values(7, 10));
  EXPECT_EQ(values_of(after_b), Values(16, 20));
  if (result.ok()) {
    EXPECT_EQ(found[5], 21u) << "what the kernel wrote was not copied back";
    return "good";
  }
  EXPECT_EQ(found[5], 10u) << "a kernel that misbehaved had an effect";
  EXPECT_TRUE(contains(result.error().message, "kernel add_u32 queued at "));
  EXPECT_TRUE(contains(result.error().message, "test.cpp:")) << result.error().message;
  return result.error().message;
}

using Call = kernels::KernelCall;
uint32_t* words(const Call& call, size_t i) { return call.buffer<uint32_t>(i); }
void write_all(const Call& call) {
  for (int i = 0; i < 5; ++i) words(call, 0)[i] = words(call, 1)[i % 3] + 1;
}

TEST(SimulatedRangeCheck, PassesAKernelThatKeepsToItsBindings) {
  EXPECT_EQ(verdict(Access::Write, &write_all), "good");
  EXPECT_EQ(verdict(Access::ReadWrite, &write_all), "good");
}

TEST(SimulatedRangeCheck, LetsAWrittenBindingKeepWhatIsNotWritten) {
  EXPECT_EQ(verdict(Access::Write, [](const Call& call) { words(call, 0)[1] = 21; }), "good");
}

TEST(SimulatedRangeCheck, LetsAnUpdatedBindingBeRead) {
  const auto add_one = [](const Call& call) {
    for (int i = 0; i < 5; ++i) words(call, 0)[i] += 11;
  };
  EXPECT_EQ(verdict(Access::ReadWrite, add_one), "good");
}

TEST(SimulatedRangeCheck, FindsAWriteToABindingThatIsOnlyRead) {
  const std::string found = verdict(Access::Write, [](const Call& call) {
    write_all(call);
    words(call, 1)[2] = 3;
  });
  EXPECT_TRUE(contains(found, "changed binding 1, which it may only read")) << found;
}

TEST(SimulatedRangeCheck, FindsAWritePastTheEnd) {
  const std::string found = verdict(Access::Write, [](const Call& call) {
    write_all(call);
    call.buffers[0][20] = std::byte{7};
  });
  EXPECT_TRUE(contains(found, "past the end of binding 0")) << found;
}

TEST(SimulatedRangeCheck, FindsAWriteBeforeTheStart) {
  const std::string found = verdict(Access::Write, [](const Call& call) {
    write_all(call);
    words(call, 1)[-1] = 7;
  });
  EXPECT_TRUE(contains(found, "before the start of binding 1")) << found;
}

TEST(SimulatedRangeCheck, FindsAReadPastTheEnd) {
  const std::string found = verdict(Access::Write, [](const Call& call) {
    write_all(call);
    words(call, 0)[4] = words(call, 1)[3];
  });
  EXPECT_TRUE(contains(found, "byte 16 of binding 0")) << found;
  EXPECT_TRUE(contains(found, "what lies around a binding")) << found;
}

TEST(SimulatedRangeCheck, FindsAReadOfABindingThatIsOnlyWritten) {
  const std::string found = verdict(Access::Write, [](const Call& call) {
    words(call, 0)[0] += 1;
    words(call, 0)[1] = 21;
  });
  EXPECT_TRUE(contains(found, "byte 0 of binding 0")) << found;
  EXPECT_TRUE(contains(found, "what the binding held before")) << found;
}

TEST(SimulatedRangeCheck, LetsAKernelReadBackWhatItWroteItself) {
  const auto write_and_add = [](const Call& call) {
    words(call, 0)[1] = 20;
    words(call, 0)[1] += 1;
  };
  EXPECT_EQ(verdict(Access::Write, write_and_add), "good");
}

}  // namespace
}  // namespace millrace::testing
