// Each verb returns while the device is still busy with long work queued before: on a real device
// by its own doing, on the fake one because it stands still. A call that had waited for the device
// would find the work passed.
#include <functional>

#include "backends/cuda/cuda_suite.h"

namespace millrace::cuda {
namespace {

using testing::add;
using testing::bytes_of;
using testing::whole;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class Asynchrony : public CudaSuite {
 protected:
  void SetUp() override {
    CudaSuite::SetUp();
    if (!HasFatalFailure() && !IsSkipped()) open(",staging=65536");
  }
  /// Queues tens of milliseconds of work for a large device (256 MiB read and written 400 times),
  /// calls `body` and checks that the work is still under way.
  void expect_returns_while_busy(const std::function<void()>& body) {
    const uint64_t bytes = fake == nullptr ? 256 * kMiB : kMiB;
    const BufferId load = buffer(bytes, "load");
    device->fill(whole(load, bytes), 0).or_raise();
    wait(device->submit()).or_raise();
    if (fake != nullptr) fake->hold();
    for (int i = 0; i < 400; ++i) add(*device, whole(load, bytes), 1).or_raise();
    const Point last = device->submit();
    body();
    EXPECT_LT(device->poll(), last) << "the call waited for the device";
    if (fake != nullptr) fake->release();
    wait(device->submit()).or_raise();
    device->release(load);
  }
};

TEST_F(Asynchrony, OfASmallUpload) {
  const BufferId t = holding({1});
  expect_returns_while_busy([&] { device->upload(whole(t, 4), bytes_of(Values{2})).or_raise(); });
  device->release(t);
}

TEST_F(Asynchrony, OfAnUploadThatNeedsNewPinnedMemory) {
  const Values values(4 * kMiB, 7);
  const BufferId t = buffer(16 * kMiB);
  expect_returns_while_busy(
      [&] { device->upload(whole(t, 16 * kMiB), bytes_of(values)).or_raise(); });
  device->release(t);
}

TEST_F(Asynchrony, OfADownload) {
  const BufferId t = holding({1});
  Ticket ticket;
  expect_returns_while_busy([&] { ticket = device->download(whole(t, 4)).or_raise(); });
  EXPECT_EQ(testing::values_of(ticket), Values{1});
  device->release(t);
}

TEST_F(Asynchrony, OfADownloadThatNeedsNewPinnedMemory) {
  const BufferId t = buffer(16 * kMiB);
  Ticket ticket;
  expect_returns_while_busy([&] { ticket = device->download(whole(t, 16 * kMiB)).or_raise(); });
  EXPECT_TRUE(ticket.ready());
  device->release(t);
}

TEST_F(Asynchrony, OfCopiesAndFills) {
  const BufferId a = holding({1}), b = holding({2});
  expect_returns_while_busy([&] {
    device->copy(whole(a, 4), whole(b, 4)).or_raise();
    device->fill(whole(b, 4), 3).or_raise();
  });
  EXPECT_EQ(testing::read_blocking(*device, whole(a, 4)), Values{2});
  device->release(a);
  device->release(b);
}

TEST_F(Asynchrony, OfAnAllocationThatTheDriverHasToServe) {
  BufferId t;
  expect_returns_while_busy([&] {
    t = buffer(48 * kMiB);
    device->fill(whole(t, 48 * kMiB), 1).or_raise();
  });
  device->release(t);
}

TEST_F(Asynchrony, OfAnAllocationThatGivesIdleBlocksBackFirst) {
  const BufferId idle = buffer(160 * kMiB);  // more than is kept free beside what is in use
  device->fill({idle, 0, 4}, 1).or_raise();
  wait(device->submit()).or_raise();
  BufferId t;
  expect_returns_while_busy([&] {
    const uint64_t reserved = device->memory().reserved_bytes;
    device->release(idle);
    t = buffer(8 * kMiB);
    device->fill(whole(t, 8 * kMiB), 1).or_raise();
    EXPECT_LT(device->memory().reserved_bytes, reserved) << "nothing was given back";
  });
  device->release(t);
}

TEST_F(Asynchrony, OfMoreLaunchesThanDriversQueue) {
  const BufferId t = holding({0});
  expect_returns_while_busy([&] {
    for (int i = 0; i < 3000; ++i) add(*device, whole(t, 4), 1).or_raise();
  });
  EXPECT_EQ(testing::read_blocking(*device, whole(t, 4)), Values{3000});
  device->release(t);
}

}  // namespace
}  // namespace millrace::cuda
