// The CUDA device on the fake driver or a real one: order, snapshots, staging, limits and the end.
#include "backends/cuda/cuda_suite.h"
#include "device/random_program.h"
#include "device/trace.h"

namespace millrace::cuda {
namespace {

using testing::add;
using testing::bytes_of;
using testing::read_blocking;
using testing::values_of;
using testing::whole;

using CudaDevice = CudaSuite;

TEST_F(CudaDevice, RunsUploadsKernelsCopiesAndFillsInOrder) {
  const BufferId a = holding({1, 2, 3, 4}), b = buffer(16);
  add(*device, whole(a, 16), 10).or_raise();
  device->copy({b, 4, 8}, {a, 0, 8}).or_raise();
  device->fill({b, 0, 4}, 7).or_raise();
  device->fill({b, 12, 4}, 0x01020304).or_raise();
  EXPECT_EQ(read_blocking(*device, whole(b, 16)), (Values{7, 11, 12, 0x01020304}));
  device->release(a);
  device->release(b);
}

TEST_F(CudaDevice, SaysWhatItIs) {
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.id, "cuda:0");
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.driver.find("CUDA 1"), 0u) << info.driver;
  EXPECT_GT(info.memory_bytes, uint64_t{1} << 30);
  EXPECT_FALSE(info.software);
}

TEST_F(CudaDevice, ATicketIsReadyInTimeWithoutFurtherCalls) {
  const BufferId t = holding({5});
  const Ticket ticket = device->download(whole(t, 4)).or_raise();
  while (!ticket.ready()) {
  }
  EXPECT_EQ(values_of(ticket), Values{5});
  device->release(t);
}

TEST_F(CudaDevice, ATicketKeepsItsValueWhenTheSourceIsOverwrittenAndFreed) {  // B7
  const BufferId t = holding({1, 1, 1, 1});
  const Ticket ticket = device->download(whole(t, 16)).or_raise();
  device->fill(whole(t, 16), 2).or_raise();
  device->release(t);
  const BufferId next = buffer(16);
  device->fill(whole(next, 16), 3).or_raise();
  wait(device->submit()).or_raise();
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), Values(4, 1));
  device->release(next);
}

TEST_F(CudaDevice, ATicketOutlivesItsDevice) {
  const BufferId t = holding({8, 9});
  const Ticket ticket = device->download(whole(t, 8)).or_raise();
  device->release(t);
  device = nullptr;
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(values_of(ticket), (Values{8, 9}));
}

TEST_F(CudaDevice, ADeviceSideCountBoundsTheThreads) {
  const BufferId t = holding(Values(4, 0)), count = holding({1, 1});
  add(*device, {count, 4, 4}, 1).or_raise();
  add(*device, whole(t, 16), 5, {count, 4, 4}).or_raise();
  EXPECT_EQ(read_blocking(*device, whole(t, 16)), (Values{5, 5, 0, 0}));
  device->release(t);
  device->release(count);
}

TEST_F(CudaDevice, WorkOfNothingIsQueuedLikeAnyOther) {
  const BufferId t = holding({3});
  const Point before = device->submit();
  const AddU32Params params{.value = 9};
  const Binding bindings[] = {{whole(t, 4), Access::ReadWrite}};
  device
      ->launch({.kernel = KernelId::add_u32,
                .threads = 0,
                .bindings = bindings,
                .params = std::as_bytes(std::span(&params, 1))})
      .or_raise();
  device->fill({t, 0, 0}, 1).or_raise();
  device->upload({t, 0, 0}, {}).or_raise();
  const Ticket nothing = device->download({t, 4, 0}).or_raise();
  EXPECT_GE(device->submit(), before + 3);
  EXPECT_EQ(read_blocking(*device, whole(t, 4)), Values{3});
  EXPECT_TRUE(nothing.ready());
  device->release(t);
}

TEST_F(CudaDevice, RandomProgramsGiveEverySnapshotItsValue) {
  for (const char* fields : {"", ",staging=4096", ",batch=1,depth=3", ",check", ",batch=7"}) {
    open(fields);
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      testing::RandomProgram program(*device, seed);
      program.run();
      program.snapshot_all();
      wait(device->submit()).or_raise();
      program.check();
      ASSERT_FALSE(HasFatalFailure()) << fields;
    }
  }
}

TEST_F(CudaDevice, ManyCommandsQueuedAtOnceKeepTheirOrder) {
  const BufferId t = holding({0});
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 5000; ++i) add(*device, whole(t, 4), i).or_raise();
    wait(device->submit()).or_raise();
  }
  EXPECT_EQ(read_blocking(*device, whole(t, 4)), Values{3u * 4999 * 5000 / 2});
  device->release(t);
}

TEST_F(CudaDevice, EveryElementOfALargeLaunchIsReached) {
  Values values(3'000'001);
  for (uint32_t i = 0; i < values.size(); ++i) values[i] = i * 2654435761u;
  const BufferId t = holding(values);
  add(*device, whole(t, 4 * values.size()), 3).or_raise();
  const Values found = read_blocking(*device, whole(t, 4 * values.size()));
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(found[i], values[i] + 3) << i;
  device->release(t);
}

TEST_F(CudaDevice, TheLedgerHoldsExactlyTheWaitsThatHappened) {
  const BufferId t = holding({0});
  const Point first = device->submit();
  EXPECT_EQ(n_waits(), 0u);
  wait(first).or_raise();
  const uint64_t waits = n_waits();  // 0 where the device was faster
  EXPECT_LE(waits, 1u);
  wait(first).or_raise();
  wait(0).or_raise();
  EXPECT_EQ(n_waits(), waits);
  EXPECT_EQ(device->poll(), first);
  device->release(t);
}

TEST_F(CudaDevice, MemoryPastTheLimitIsRefusedWithTheFigures) {  // B16
  open(",memory=4194304");
  const BufferId a = buffer(2 << 20, "big");
  const auto refused = device->allocate(3 << 20, "images");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(refused.error().message.find("3.0 MiB asked for 'images'"), std::string::npos)
      << refused.error().message;
  device->release(a);
  // The freed block is too small to serve, so it has to be given back first.
  const BufferId b = buffer(3 << 20, "images");
  EXPECT_EQ(device->memory().in_use_bytes, 3u << 20);
  device->release(b);
}

TEST_F(CudaDevice, ClosingWithWorkQueuedRunsItAndEnds) {  // B14
  const BufferId t = holding(Values(1024, 0));
  for (int i = 0; i < 1000; ++i) add(*device, whole(t, 4096), 1).or_raise();
  const Ticket ticket = device->download(whole(t, 4096)).or_raise();
  device = nullptr;  // `t` is leaked on purpose
  ASSERT_TRUE(ticket.ready());
  EXPECT_EQ(ticket.as<uint32_t>(), 1000u);
}

TEST_F(CudaDevice, CountsLaunchesAndTimes) {
  const BufferId t = holding(Values(1 << 18, 0));
  for (int i = 0; i < 10; ++i) add(*device, whole(t, 1 << 20), 1).or_raise();
  wait(device->submit()).or_raise();
  const QueueStats stats = device->queue();
  EXPECT_EQ(stats.launches, 10u);
  EXPECT_GT(stats.busy_ns, 0u);
  EXPECT_EQ(stats.queued, 0u);
  device->release(t);
}

TEST_F(CudaDevice, TheTimeBetweenBatchesWithNothingQueuedIsDry) {
  const BufferId t = holding({0});
  for (int i = 0; i < 100; ++i) {
    add(*device, whole(t, 4), 1).or_raise();
    wait(device->submit()).or_raise();
  }
  EXPECT_GT(device->queue().dry_ns, 0u);
  device->release(t);
}

TEST_F(CudaDevice, ATraceHoldsEachCommandWhenItRan) {
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
  EXPECT_NE(json.find("tests/backends/cuda/cuda_device_test.cpp:"), std::string::npos) << json;
}

TEST_F(CudaDevice, TooManyBindingsAndStaleBuffersAreErrors) {
  const auto bare = testing::open_or_die("cuda:0");
  const BufferId t = bare->allocate(16, "t").or_raise();
  const std::vector<Binding> bindings(25, {whole(t, 16), Access::Read});
  EXPECT_FALSE(
      bare->launch({.kernel = KernelId::add_u32, .threads = 1, .bindings = bindings}).ok());
  bare->release(t);
  EXPECT_FALSE(bare->fill(whole(t, 16), 0).ok());
  EXPECT_FALSE(bare->wait_blocking(99, {WaitReason::Test, "test.wait"}).ok());
}

}  // namespace
}  // namespace millrace::cuda
