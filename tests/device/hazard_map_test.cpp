// HazardMap: last writers and readers by byte range.
#include "device/hazard_map.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace {
namespace {

TEST(HazardMap, SeparatesWritersFromReaders) {
  HazardMap map;
  map.note_write(0, 64, 1, 0);
  map.note_read(0, 64, 2, 0);
  EXPECT_EQ(map.last_write(0, 64), 1u);
  EXPECT_EQ(map.last_use(0, 64), 2u);
}

TEST(HazardMap, SeparatesRanges) {
  HazardMap map;
  map.note_write(0, 64, 1, 0);
  map.note_write(16, 16, 2, 0);
  map.note_write(100, 10, 3, 0);
  EXPECT_EQ(map.last_write(0, 16), 1u);
  EXPECT_EQ(map.last_write(15, 2), 2u);
  EXPECT_EQ(map.last_write(32, 32), 1u);
  EXPECT_EQ(map.last_write(64, 36), 0u);
  EXPECT_EQ(map.last_write(109, 1), 3u);
  EXPECT_EQ(map.last_write(110, 50), 0u);
}

TEST(HazardMap, AnEmptyRangeUsesNothing) {
  HazardMap map;
  map.note_write(8, 0, 1, 0);
  EXPECT_EQ(map.last_use(0, 64), 0u);
  map.note_write(0, 64, 2, 0);
  EXPECT_EQ(map.last_use(8, 0), 0u);
}

TEST(HazardMap, ForgetsWhatHasPassed) {
  RangePoints points;
  for (uint64_t i = 0; i < 10; ++i) points.mark(i * 10, i * 10 + 5, i + 1, 0);
  EXPECT_EQ(points.range_count(), 10u);
  points.mark(200, 210, 11, 9);
  EXPECT_EQ(points.range_count(), 2u);
  EXPECT_EQ(points.newest(0, 300), 11u);
  EXPECT_EQ(points.newest(0, 100), 10u);
}

TEST(HazardMap, AgreesWithAMapOfSingleBytes) {
  // Never older than the true point; equal to it while there are few ranges.
  constexpr uint64_t kBytes = 256;
  for (const uint64_t n_marks : {8u, 300u}) {
    RangePoints points;
    std::vector<Point> truth(kBytes, 0);
    uint64_t state = 7;
    const auto next = [&state](uint64_t n) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return (state >> 33) % n;
    };
    for (Point point = 1; point <= n_marks; ++point) {
      const uint64_t begin = next(kBytes);
      const uint64_t end = begin + next(12);
      points.mark(begin, end, point, 0);
      for (uint64_t i = begin; i < end && i < kBytes; ++i) truth[i] = point;
      for (uint64_t i = 0; i < kBytes; ++i) {
        ASSERT_GE(points.newest(i, i + 1), truth[i]);
        if (n_marks == 8) {
          ASSERT_EQ(points.newest(i, i + 1), truth[i]);
        }
      }
    }
    EXPECT_LE(points.range_count(), 40u);
  }
}

}  // namespace
}  // namespace millrace
