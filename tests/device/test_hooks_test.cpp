// The places where tests plant waits: silent unless planted, and named when they are.
#include "device/test_hooks.h"

#include <gtest/gtest.h>

#include "device/device_helpers.h"

namespace millrace {
namespace {

using testing::add;
using testing::open_or_die;
using testing::whole;

void wait_for_all(Device& device, const WaitSite& site) {
  device.wait_blocking(device.submit(), site).or_raise();
}

TEST(TestHooks, APlantedWaitIsRecordedWithItsPlaceUntilItIsTakenAway) {
  const auto device = open_or_die("cpu:2,lazy");
  const BufferId buffer = device->allocate(256, "test").or_raise();
  const auto three_launches = [&] {
    device->fill(whole(buffer, 256), 0).or_raise();
    for (int i = 0; i < 3; ++i) add(*device, whole(buffer, 256), 1).or_raise();
  };
  three_launches();
  EXPECT_TRUE(device->ledger().records().empty());

  plant_wait(WaitPlace::Backend, &wait_for_all);
  three_launches();
  plant_wait(WaitPlace::Backend, nullptr);
  three_launches();
  const auto records = device->ledger().records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].site, "planted.backend");
  EXPECT_EQ(records[0].reason, WaitReason::UserRead);
  EXPECT_EQ(records[0].count, 3u);
  EXPECT_TRUE(records[0].where.starts_with("src/backends/cpu/cpu_device.cpp:")) << records[0].where;
  device->release(buffer);
}

TEST(TestHooks, EachPlaceHasItsOwnName) {
  const auto device = open_or_die("cpu:2,lazy");
  static std::vector<std::string> met;
  met.clear();
  for (int i = 0; i < kWaitPlaceCount; ++i) {
    const auto place = static_cast<WaitPlace>(i);
    pass_wait_place(place, *device);
    plant_wait(place, [](Device&, const WaitSite& site) { met.push_back(site.name); });
    pass_wait_place(place, *device);
    plant_wait(place, nullptr);
  }
  EXPECT_EQ(met,
            (std::vector<std::string>{"planted.trainer", "planted.facade", "planted.backend"}));
}

}  // namespace
}  // namespace millrace
