// StagingRing: order of reclaiming, wrapping, and the point to wait for.
#include "device/staging_ring.h"

#include <gtest/gtest.h>

#include <deque>

namespace millrace {
namespace {

TEST(StagingRing, ReclaimsTheOldestSliceFirst) {
  StagingRing ring(1024);
  EXPECT_EQ(ring.take(512, 1, 0), 0u);
  EXPECT_EQ(ring.take(512, 2, 0), 512u);
  EXPECT_FALSE(ring.take(256, 3, 0));
  EXPECT_EQ(ring.point_that_frees(256), 1u);
  EXPECT_EQ(ring.point_that_frees(600), 2u);
  EXPECT_EQ(ring.take(256, 3, 1), 0u);
}

TEST(StagingRing, DoesNotSplitASliceAtTheEnd) {
  StagingRing ring(1024);
  EXPECT_EQ(ring.take(512, 1, 0), 0u);
  EXPECT_EQ(ring.take(320, 2, 0), 512u);
  EXPECT_EQ(ring.take(256, 3, 1), 0u);
  EXPECT_EQ(ring.take(256, 4, 1), 256u);
}

TEST(StagingRing, TakesASliceOfItsWholeSize) {
  StagingRing ring(1024);
  EXPECT_EQ(ring.take(64, 1, 0), 0u);
  EXPECT_FALSE(ring.take(1024, 2, 0));
  EXPECT_EQ(ring.point_that_frees(1024), 1u);
  EXPECT_EQ(ring.take(1024, 2, 1), 0u);
}

TEST(StagingRing, NeverHandsOutBytesInUseAndAlwaysNamesAPointThatHelps) {
  StagingRing ring(4096);
  struct Live {
    uint64_t begin, end;
    Point point;
  };
  std::deque<Live> live;
  uint64_t state = 3;
  Point passed = 0;
  for (Point point = 1; point < 5000; ++point) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t bytes = 1 + (state >> 33) % (point % 17 == 0 ? 4096 : 700);
    auto offset = ring.take(bytes, point, passed);
    if (!offset) {
      const Point needed = ring.point_that_frees(bytes);
      ASSERT_GT(needed, passed);
      ASSERT_LT(needed, point);
      passed = needed;
      while (!live.empty() && live.front().point <= passed) live.pop_front();
      offset = ring.take(bytes, point, passed);
      ASSERT_TRUE(offset) << "point " << needed << " did not help";
    }
    ASSERT_LE(*offset + bytes, 4096u);
    for (const Live& other : live)
      ASSERT_TRUE(*offset >= other.end || *offset + bytes <= other.begin);
    live.push_back({*offset, *offset + bytes, point});
  }
}

}  // namespace
}  // namespace millrace
