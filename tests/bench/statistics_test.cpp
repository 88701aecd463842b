// Medians, spread and drift of figures worked out by hand.
#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace millrace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Statistics, TheMedianIsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(median({5, 1, 3}), 3);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 10}), 3.5);
  EXPECT_DOUBLE_EQ(median({7}), 7);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Statistics, TheSpreadHasRangeAndMedianAbsoluteDeviation) {
  // Deviations from 4: 3, 2, 0, 1, 96.
  const Spread spread = spread_of({1, 2, 4, 5, 100});
  EXPECT_DOUBLE_EQ(spread.median, 4);
  EXPECT_DOUBLE_EQ(spread.min, 1);
  EXPECT_DOUBLE_EQ(spread.max, 100);
  EXPECT_DOUBLE_EQ(spread.mad, 2);
  EXPECT_EQ(spread.n, 5u);
}

TEST(Statistics, WhatIsUnknownIsLeftOut) {
  const Spread spread = spread_of({kNan, 2, 4});
  EXPECT_EQ(spread.n, 2u);
  EXPECT_DOUBLE_EQ(spread.median, 3);
  const Spread none = spread_of({kNan});
  EXPECT_EQ(none.n, 0u);
  EXPECT_TRUE(std::isnan(none.median) && std::isnan(none.mad));
}

TEST(Statistics, TheSlopeIsTheChangeFromOneToTheNext) {
  EXPECT_DOUBLE_EQ(slope({10, 12, 14, 16}), 2);
  EXPECT_DOUBLE_EQ(slope({5, 5, 5}), 0);
  // Least squares by hand: x 0 1 2, y 0 3 3: slope 1.5.
  EXPECT_DOUBLE_EQ(slope({0, 3, 3}), 1.5);
  EXPECT_DOUBLE_EQ(slope({10, kNan, 14}), 2);
  EXPECT_TRUE(std::isnan(slope({3})));
}

}  // namespace
}  // namespace millrace
