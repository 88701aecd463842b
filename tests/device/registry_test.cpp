// The registry: ids, the choice of "auto", and errors that name the ids there are.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/device.h"

namespace millrace {
namespace {

// A graphics driver that runs on the processor, and one that cannot open.
std::vector<DeviceInfo> list_software() { return {{.id = "vulkan:0", .software = true}}; }
std::vector<DeviceInfo> list_broken() { return {{.id = "cuda:0"}}; }
Result<std::unique_ptr<Device>> refuse(const std::string& argument) {
  return Error{ErrorCode::DeviceLost, "refused '" + argument + "'"};
}
constexpr Backend kSoftware{"vulkan", &list_software, &refuse};
constexpr Backend kBroken{"cuda", &list_broken, &refuse};
const bool kRegistered = register_backend(&kSoftware) && register_backend(&kBroken);

TEST(Registry, ListsDevicesBestFirstAndSoftwareLast) {
  ASSERT_TRUE(kRegistered);
  const auto devices = list_devices();
  ASSERT_EQ(devices.size(), 4u);
  EXPECT_EQ(devices[0].id, "cuda:0");
  EXPECT_EQ(devices[1].id, "cpu");
  EXPECT_EQ(devices[2].id, "vulkan:0");
  EXPECT_EQ(devices[3].id, "simulated") << "never before a real device";
  EXPECT_GT(devices[1].memory_bytes, 0u);
  EXPECT_GT(devices[1].threads, 0);
}

TEST(Registry, AutoPassesOverWhatDoesNotOpenAndSoftwareDrivers) {
  EXPECT_EQ(open_device("auto").or_raise()->info().id, "cpu");
}

TEST(Registry, PassesTheArgumentToTheBackend) {
  EXPECT_EQ(open_device("cpu:3").or_raise()->info().threads, 3);
  EXPECT_EQ(open_device("vulkan:7,x").error().message, "refused '7,x'");
}

TEST(Registry, AnUnknownIdIsAUsageErrorWithTheKnownOnes) {
  const auto result = open_device("abacus:1");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::Usage);
  for (const char* part : {"abacus:1", "auto", "cpu", "cuda:0"}) {
    EXPECT_NE(result.error().message.find(part), std::string::npos) << part;
  }
}

TEST(Registry, CpuOptionsAreChecked) {
  for (const char* id :
       {"cpu:0", "cpu:many", "cpu:2,,3", "cpu:memory=", "cpu:staging=1", "cpu:-1"}) {
    const auto result = open_device(id);
    ASSERT_FALSE(result.ok()) << id;
    EXPECT_EQ(result.error().code, ErrorCode::Usage);
  }
}

}  // namespace
}  // namespace millrace
