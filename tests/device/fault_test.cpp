// A fault is said in full once and remembered for ever.
#include "device/fault.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Fault, IsSaidInFullOnceAndRememberedForEver) {
  Fault fault;
  EXPECT_FALSE(fault.report());
  fault.set({ErrorCode::DeviceLost, "first"});
  fault.set({ErrorCode::Internal, "second"});
  ASSERT_TRUE(fault.unreported());
  EXPECT_EQ(fault.unreported()->message, "first");
  EXPECT_EQ(fault.report()->message, "first");
  EXPECT_FALSE(fault.unreported());
  const auto again = fault.report();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->code, ErrorCode::DeviceLost);
  EXPECT_EQ(again->message, "the device has stopped for good: first");
}

}  // namespace
}  // namespace millrace
