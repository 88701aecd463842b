// Without a Vulkan device there is nothing to test, unless REQUIRE_BACKENDS (names separated by
// commas) says that there must be one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "device/device.h"

namespace millrace::vulkan {
namespace {

bool is_required() {
  const char* const required = std::getenv("REQUIRE_BACKENDS");
  return required != nullptr &&
         ("," + std::string(required) + ",").find(",vulkan,") != std::string::npos;
}

class VulkanEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    const auto devices = list_devices();
    const bool found = std::any_of(devices.begin(), devices.end(), [](const DeviceInfo& info) {
      return info.id.starts_with("vulkan:");
    });
    if (found) return;
    if (is_required()) FAIL() << "REQUIRE_BACKENDS names vulkan, and there is no device";
    GTEST_SKIP() << "no Vulkan device";
  }
};

[[maybe_unused]] ::testing::Environment* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new VulkanEnvironment);

}  // namespace
}  // namespace millrace::vulkan
