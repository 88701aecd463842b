// The launch log names the launches of a span of points.
#include "device/launch_log.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(LaunchLog, NamesTheLaunchesOfASpanOldestFirstWithTheirSites) {
  LaunchLog log;
  for (Point point = 1; point <= 4; ++point) {
    log.note(point, point % 2 == 0 ? KernelId::project : KernelId::add_u32,
             SourceLocation::current());
  }
  const std::string text = log.between(1, 3, 8);
  EXPECT_EQ(text.find("project queued at "), 0u) << text;
  EXPECT_NE(text.find("launch_log_test.cpp:"), std::string::npos) << text;
  EXPECT_NE(text.find(", add_u32 queued at "), std::string::npos) << text;
  EXPECT_EQ(text.find("more"), std::string::npos) << text;
}

TEST(LaunchLog, CountsWhatItDoesNotName) {
  LaunchLog log;
  for (Point point = 1; point <= 10; ++point) {
    log.note(point, KernelId::add_u32, SourceLocation::current());
  }
  const std::string text = log.between(0, 10, 2);
  EXPECT_NE(text.find(" and 8 more"), std::string::npos) << text;
  EXPECT_EQ(log.between(10, 20, 2), "no kernel");
}

TEST(LaunchLog, ForgetsTheOldestLaunchesFirst) {
  LaunchLog log;
  for (Point point = 1; point <= 2000; ++point) {
    log.note(point, KernelId::add_u32, SourceLocation::current());
  }
  EXPECT_EQ(log.between(0, 1000, 2), "no kernel");
  EXPECT_NE(log.between(1998, 2000, 2), "no kernel");
}

}  // namespace
}  // namespace millrace
