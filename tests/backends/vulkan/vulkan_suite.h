// What the tests of the Vulkan backend share: a device under validation.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "device/device_helpers.h"

namespace millrace::vulkan {

/// Opens devices behind the argument checks and under the validation layer: its first message
/// makes every later wait an error.
class VulkanSuite : public ::testing::Test {
 protected:
  using Values = std::vector<uint32_t>;

  void SetUp() override { open(""); }

  /// Opens the device anew with more fields after its id, such as ",staging=4096".
  void open(const std::string& fields) {
    device = nullptr;
    device = make_checked(testing::open_or_die("vulkan:0,validate" + fields));
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
  Values read(BufferId id, uint64_t bytes) {
    return testing::read_blocking(*device, testing::whole(id, bytes));
  }
  /// Waits that the host made so far, for whatever reason.
  uint64_t n_waits() {
    uint64_t n = 0;
    for (const WaitRecord& record : device->ledger().records()) n += record.count;
    return n;
  }

  std::unique_ptr<Device> device;
};

}  // namespace millrace::vulkan
