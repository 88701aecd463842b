// What the tests of the CUDA backend share: a device, on the fake driver or on a real one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/cuda/fake/fake_cuda.h"
#include "device/device_helpers.h"

namespace millrace::cuda {

/// Opens devices behind the argument checks. Without a driver there is nothing to test.
class CudaSuite : public ::testing::Test {
 protected:
  using Values = std::vector<uint32_t>;

  void SetUp() override {
    if (fake != nullptr) {
      fake->reset();
      before_ = fake->counts();
    }
    if (list_devices().empty()) {
      ASSERT_EQ(std::getenv("MILLRACE_CUDA_LIBRARY"), nullptr) << "the named driver has no device";
      GTEST_SKIP() << "no CUDA device";
    }
    open("");
  }
  void TearDown() override {
    device = nullptr;
    if (fake == nullptr || leaks) return;
    fake->release();
    const fake::Counts counts = fake->counts();
    EXPECT_LE(counts.live_blocks, before_.live_blocks);
    EXPECT_LE(counts.live_pinned, before_.live_pinned);
    EXPECT_LE(counts.live_events, before_.live_events);
    EXPECT_LE(counts.modules, before_.modules);
    EXPECT_LE(counts.retained, before_.retained);
  }

  /// Opens the device anew with more fields after its id, such as ",staging=4096".
  void open(const std::string& fields) {
    device = nullptr;
    device = make_checked(testing::open_or_die("cuda:0" + fields));
  }
  BufferId buffer(uint64_t bytes, const char* label = "test") {
    return device->allocate(bytes, label).or_raise();
  }
  /// A buffer that will hold `values`.
  BufferId holding(const Values& values) {
    const BufferId id = buffer(4 * values.size());
    device->upload(testing::whole(id, 4 * values.size()), testing::bytes_of(values)).or_raise();
    return id;
  }
  Result<void> wait(Point point) {
    return device->wait_blocking(point, {WaitReason::Test, "test.wait"});
  }
  /// Waits that the host made so far, for whatever reason.
  uint64_t n_waits() {
    uint64_t n = 0;
    for (const WaitRecord& record : device->ledger().records()) n += record.count;
    return n;
  }

  fake::FakeCuda* const fake = fake::fake_cuda();  // null: a real driver
  bool leaks = false;                              // the test leaves a device that cannot end
  std::unique_ptr<Device> device;

 private:
  fake::Counts before_;  // not 0 behind a test that left a device
};

/// A device that stands still until told: only the fake driver can.
class HeldCudaSuite : public CudaSuite {
 protected:
  void SetUp() override {
    if (fake == nullptr) GTEST_SKIP() << "needs the fake driver";
    CudaSuite::SetUp();
  }
  /// From now on nothing runs. What is queued so far has run.
  void hold() {
    wait(device->submit()).or_raise();
    fake->hold();
    waits_before_ = n_waits();
    stops_before_ = fake->stopping_calls_of_this_thread();
  }
  /// Nothing stopped this thread since hold(), neither on the ledger's books nor in the driver.
  void expect_no_stop() {
    EXPECT_EQ(n_waits(), waits_before_);
    EXPECT_EQ(fake->stopping_calls_of_this_thread(), stops_before_) << "a driver call may stop";
  }
  void run_everything() {
    fake->release();
    wait(device->submit()).or_raise();
  }

 private:
  uint64_t waits_before_ = 0, stops_before_ = 0;
};

}  // namespace millrace::cuda
