// Draws without replacement: how often each row is among the k smallest keys.
#include "kernels/mrnf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernels/direct_call.h"

namespace millrace::test {
namespace {

constexpr uint32_t kRows = 6, kDrawn = 3;

struct Rows {
  std::vector<float> geometry = std::vector<float>(row_floats(kRows, kGeometryLanes));
  std::vector<float> statistics = std::vector<float>(row_floats(kRows, kStatisticLanes));
  Control control = open_control(kRows);
  MrnfCounts counts = {};
  std::vector<uint32_t> edges = std::vector<uint32_t>(kRows, kernels::kNoDraw);

  Rows() {
    for (uint32_t row = 0; row < kRows; ++row) {
      geometry[row_index(row, kLaneRotation, kGeometryLanes)] = 1;
      statistics[row_index(row, kStatWeight, kStatisticLanes)] = 1;
    }
    control.gate.accepted = 4;
  }
  void set_opacity(uint32_t row, double o) {
    geometry[row_index(row, kLaneOpacity, kGeometryLanes)] =
        static_cast<float>(std::log(o / (1 - o)));
  }
  std::vector<uint32_t> keys(uint32_t step) {
    std::vector<uint32_t> out(kRows);
    StepBlock block = block_of(4);
    block.seed = 42;
    block.step = step;
    call_kernel(kernels::mrnf_replace_keys, kRows, RowsParams{},
                {block, control, statistics, geometry, counts, edges, out});
    return out;
  }
};

// The probability that each row is among the first kDrawn of draws without replacement.
std::array<double, kRows> inclusion(const std::array<double, kRows>& weights) {
  std::array<double, kRows> sum = {};
  const auto draw = [&](const auto& self, uint32_t taken, uint32_t n, double p) -> void {
    if (n == kDrawn) {
      for (uint32_t i = 0; i < kRows; ++i) sum[i] += taken >> i & 1 ? p : 0;
      return;
    }
    double left = 0;
    for (uint32_t i = 0; i < kRows; ++i) left += taken >> i & 1 ? 0 : weights[i];
    for (uint32_t i = 0; i < kRows; ++i) {
      if (!(taken >> i & 1)) self(self, taken | 1u << i, n + 1, p * weights[i] / left);
    }
  };
  draw(draw, 0, 0, 1);
  return sum;
}

TEST(MrnfDraw, TakesEachRowAsOftenAsSequentialDrawsWithoutReplacement) {
  constexpr uint32_t kTrials = 20000;
  const std::array<double, kRows> weights = {0.05, 0.1, 0.2, 0.4, 0.6, 0.9};
  Rows rows;
  for (uint32_t row = 0; row < kRows; ++row) rows.set_opacity(row, weights[row]);
  std::array<uint32_t, kRows> times = {};
  for (uint32_t trial = 0; trial < kTrials; ++trial) {
    const std::vector<uint32_t> keys = rows.keys(trial);
    std::array<uint32_t, kRows> order;
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](uint32_t row) { return keys[row]; });
    for (uint32_t i = 0; i < kDrawn; ++i) ++times[order[i]];
  }
  const auto expected = inclusion(weights);
  for (uint32_t row = 0; row < kRows; ++row) {
    const double p = expected[row];
    EXPECT_NEAR(times[row] / double{kTrials}, p, 4 * std::sqrt(p * (1 - p) / kTrials)) << row;
  }
}

TEST(MrnfDraw, NeverTakesRowsThatWereNotSeenOrAreFree) {
  Rows rows;
  rows.statistics[row_index(2, kStatWeight, kStatisticLanes)] = 0;
  rows.geometry[row_index(4, kLaneRotation, kGeometryLanes)] = 0;
  for (uint32_t step = 0; step < 100; ++step) {
    const std::vector<uint32_t> keys = rows.keys(step);
    for (uint32_t row = 0; row < kRows; ++row) {
      EXPECT_EQ(keys[row] == kernels::kNoDraw, row == 2 || row == 4);
    }
  }
}

TEST(MrnfDraw, AnEdgeScoreOfTheMedianRaisesTheWeightByAQuarter) {
  Rows rows;
  const std::vector<uint32_t> plain = rows.keys(9);
  // Scores 2, 4, 8: the median is element floor(3 / 2) of them in order.
  const float scores[] = {4, 0, 8, 0, 2, 0};
  for (uint32_t row = 0; row < kRows; ++row) {
    rows.statistics[row_index(row, kStatEdge, kStatisticLanes)] = scores[row];
  }
  rows.edges = {std::bit_cast<uint32_t>(2.0f),
                std::bit_cast<uint32_t>(4.0f),
                std::bit_cast<uint32_t>(8.0f),
                kernels::kNoDraw,
                kernels::kNoDraw,
                kernels::kNoDraw};
  rows.counts.edges = 3;
  const std::vector<uint32_t> guided = rows.keys(9);
  for (uint32_t row = 0; row < kRows; ++row) {
    const double ratio = std::bit_cast<float>(plain[row]) / std::bit_cast<float>(guided[row]);
    EXPECT_NEAR(ratio, 1 + 0.25 * scores[row] / 4, 1e-5) << row;
  }
}

}  // namespace
}  // namespace millrace::test
