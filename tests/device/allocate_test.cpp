// allocate_blocking: one wait, one more try, and only when memory has run out.
#include "device/allocate.h"

#include "device/device_helpers.h"

namespace millrace {
namespace {

constexpr WaitSite kResize{WaitReason::Resize, "test.resize"};

TEST(AllocateBlocking, WaitsForNothingWhileThereIsMemory) {
  const auto device = testing::open_or_die("cpu:1,lazy");
  const BufferId a = device->allocate(64, "a").or_raise();
  device->fill({a, 0, 64}, 1).or_raise();
  const BufferId b = allocate_blocking(*device, 1000, "b", kResize).or_raise();
  EXPECT_TRUE(device->ledger().records().empty());
  EXPECT_EQ(device->poll(), 0u);
  device->release(a);
  device->release(b);
}

TEST(AllocateBlocking, PassesOnAFaultThatItsWaitMet) {
  const auto device = testing::open_or_die("cpu:1,lazy,memory=1048576,staging=4096");
  const BufferId a = device->allocate(64, "a").or_raise();
  testing::add(*device, {a, 0, 15}, 1).or_raise();
  const auto result = allocate_blocking(*device, 2 << 20, "b", kResize);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::Internal) << result.error().message;
  EXPECT_NE(result.error().message.find("add_u32"), std::string::npos);
  device->release(a);
}

}  // namespace
}  // namespace millrace
