// MRNF: removal, draws, splits, growth, decay, noise and bounds against the formulas.
#include "strategy/mrnf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "strategy/mrnf_bench.h"

namespace millrace::test {
namespace {

Statistics unseen(uint32_t) { return {}; }
Statistics seen(uint32_t) { return {1, 0.5f, 0, 0}; }
double solid(uint32_t row) { return 0.3 + 0.005 * (row % 100); }

bool is_zero(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float v) { return v == 0; });
}

// Column `axis` of the rotation of a raw quaternion.
std::array<double, 3> axis_of(const Rows& rows, uint64_t row, uint32_t axis) {
  double q[4], norm = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    q[k] = rows.geometry(row, kLaneRotation + k);
    norm += q[k] * q[k];
  }
  for (double& v : q) v /= std::sqrt(norm);
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  if (axis == 0) return {1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)};
  if (axis == 1) return {2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)};
  return {2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)};
}

uint32_t longest_of(const Rows& rows, uint64_t row) {
  uint32_t longest = 0;
  for (uint32_t k = 1; k < 3; ++k) {
    if (rows.geometry(row, kLaneScale + k) > rows.geometry(row, kLaneScale + longest)) longest = k;
  }
  return longest;
}

// The row of `before` that `child` of `after` was split from: SH rest is copied unchanged.
uint64_t parent_of(const Rows& before, const Rows& after, uint64_t child) {
  for (uint64_t i = 0; i < before.count(); ++i) {
    if (before.row_of(3, i) == after.row_of(3, child)) return i;
  }
  return ~0ull;
}

void expect_split(const Rows& before, const Rows& after, uint64_t parent, uint64_t child) {
  const uint32_t longest = longest_of(before, parent);
  const auto axis = axis_of(before, parent, longest);
  const double half = 0.5 * std::exp(double{before.geometry(parent, kLaneScale + longest)});
  for (uint32_t k = 0; k < 3; ++k) {
    const double mean = before.geometry(parent, k);
    EXPECT_NEAR(after.geometry(parent, k), mean + half * axis[k], 2e-6);
    EXPECT_NEAR(after.geometry(child, k), mean - half * axis[k], 2e-6);
    const double scale =
        before.geometry(parent, kLaneScale + k) + std::log(k == longest ? 0.5 : 0.85);
    EXPECT_NEAR(after.geometry(parent, kLaneScale + k), scale, 2e-6);
    EXPECT_NEAR(after.geometry(child, kLaneScale + k), scale, 2e-6);
  }
  for (const uint64_t row : {parent, child}) {
    EXPECT_NEAR(after.opacity(row), 0.6 * before.opacity(parent), 1e-6);
    for (uint32_t l = kLaneRotation; l < kLaneOpacity; ++l) {
      EXPECT_EQ(after.geometry(row, l), before.geometry(parent, l));
    }
    for (const int moments : {1, 2, 4, 5}) EXPECT_TRUE(is_zero(after.row_of(moments, row))) << row;
  }
}

TEST(MrnfRefine, RemovesDeadRowsSoftlyAndLeavesTheOthersAlone) {
  GaussianCloud cloud = make_cloud(60, 1, [](uint32_t row) { return row == 7 ? 0.0038 : 0.5; });
  for (size_t k = 0; k < 4; ++k) cloud.rotations[4 * 9 + k] = k == 0 ? 1e-6f : 0;
  for (size_t k = 0; k < 3; ++k) cloud.log_scales[3 * 11 + k] = -23.1f;
  cloud.log_scales[3 * 13] = -30;  // one short axis is no reason
  cloud.sh0[3 * 50 + 1] = std::nanf("");
  MrnfBench bench(cloud, 64, unseen);
  const Rows before = bench.rows_blocking();
  bench.refine(mrnf_block(5, 1000));
  const Rows after = bench.rows_blocking();
  ASSERT_EQ(after.count(), 60u);
  EXPECT_EQ(after.control.counts.dead, 4u);
  EXPECT_EQ(after.control.counts.free, 4u);
  EXPECT_EQ(after.control.counts.born, 0u) << "rows that were not seen have no weight";
  const std::set<uint64_t> dead = {7, 9, 11, 50};
  for (uint64_t row = 0; row < 60; ++row) {
    for (int group = 0; group < 6; ++group) {
      if (dead.contains(row)) {
        EXPECT_TRUE(is_zero(after.row_of(group, row))) << row << " " << group;
      } else {
        EXPECT_EQ(after.row_of(group, row), before.row_of(group, row)) << row;
      }
    }
  }
}

TEST(MrnfRefine, ReplacesRemovedRowsByChildrenOfOthersInTheLowestPlacesFirst) {
  const auto opacity = [](uint32_t row) { return row % 10 == 3 ? 0.001 : 0.4; };
  MrnfBench bench(make_cloud(100, 2, opacity), 128, seen);
  const Rows before = bench.rows_blocking();
  bench.refine(mrnf_block(5, 1000));
  const Rows after = bench.rows_blocking();
  ASSERT_EQ(after.count(), 100u);
  EXPECT_EQ(after.control.counts.free, 0u);
  EXPECT_EQ(after.control.counts.born, 10u);
  std::set<uint64_t> parents;
  for (uint64_t child = 3; child < 100; child += 10) {
    const uint64_t parent = parent_of(before, after, child);
    ASSERT_LT(parent, 100u);
    EXPECT_NE(parent % 10, 3u) << "a removed row was drawn";
    EXPECT_TRUE(parents.insert(parent).second) << "drawn twice";
    expect_split(before, after, parent, child);
  }
  for (uint64_t row = 0; row < 100; ++row) {
    if (row % 10 == 3 || parents.contains(row)) continue;
    EXPECT_EQ(after.row_of(0, row), before.row_of(0, row));
    EXPECT_EQ(after.row_of(1, row), before.row_of(1, row));
  }
}

TEST(MrnfRefine, FillsTheLowestFreePlacesAndKeepsTheRest) {
  // Two of the six free places are filled: only two rows were seen.
  const auto opacity = [](uint32_t row) { return row >= 20 && row < 26 ? 0.001 : 0.4; };
  MrnfBench bench(make_cloud(60, 3, opacity), 96, [](uint32_t row) {
    return row == 40 || row == 41 ? Statistics{1, 0, 0, 0} : Statistics{};
  });
  const Rows before = bench.rows_blocking();
  bench.refine(mrnf_block(5, 1000));
  const Rows after = bench.rows_blocking();
  EXPECT_EQ(after.control.counts.free, 4u);
  std::set<uint64_t> parents;
  for (const uint64_t child : {20, 21}) {
    parents.insert(parent_of(before, after, child));
    expect_split(before, after, parent_of(before, after, child), child);
  }
  EXPECT_EQ(parents, (std::set<uint64_t>{40, 41}));
  for (uint64_t row = 22; row < 26; ++row) EXPECT_TRUE(is_zero(after.row_of(0, row)));
  // The next refinement takes them when it grows.
  bench.set_statistics(60, [](uint32_t) { return Statistics{1, 2, 0, 0}; });
  StepBlock grows = mrnf_block(9, 1000);
  grows.mrnf.modes |= kMrnfGrows;
  grows.mrnf.growth_fraction = 0.1f;
  bench.refine(grows);
  const Rows grown = bench.rows_blocking();
  EXPECT_EQ(grown.control.counts.candidates, 56u);
  EXPECT_EQ(grown.control.counts.born, 6u);
  EXPECT_EQ(grown.count(), 62u) << "four places, then two new rows";
  EXPECT_EQ(grown.control.counts.free, 0u);
}

TEST(MrnfGrowth, IsTheRoundedFractionOfTheCandidatesLessTheReplaced) {
  for (const uint32_t n_dead : {0u, 3u, 20u}) {
    const auto opacity = [&](uint32_t row) { return row < n_dead ? 0.001 : 0.4; };
    MrnfBench bench(make_cloud(200, 4, opacity), 256, [](uint32_t row) {
      return Statistics{1, row >= 100 && row < 187 ? 1.5f : 1.0f, 0, 0};
    });
    const Rows before = bench.rows_blocking();
    StepBlock block = mrnf_block(5, 1000);
    block.mrnf.modes |= kMrnfGrows;
    block.mrnf.growth_fraction = 0.1f;  // of 87: 9
    bench.refine(block);
    const Rows after = bench.rows_blocking();
    EXPECT_EQ(after.control.counts.candidates, 87u);
    const uint32_t born = std::max(n_dead, 9u);
    EXPECT_EQ(after.control.counts.born, born);
    ASSERT_EQ(after.count(), 200u + (born - n_dead));
    std::set<uint64_t> parents;
    for (uint64_t child = 200; child < after.count(); ++child) {
      const uint64_t parent = parent_of(before, after, child);
      EXPECT_TRUE(parent >= 100 && parent < 187) << "not a candidate: " << parent;
      EXPECT_TRUE(parents.insert(parent).second);
      expect_split(before, after, parent, child);
    }
    for (uint64_t child = 0; child < n_dead; ++child) {
      EXPECT_TRUE(parents.insert(parent_of(before, after, child)).second)
          << "a row was drawn to replace and to grow";
    }
  }
}

TEST(MrnfGrowth, StopsAtTheCapAndAtItsEnd) {
  const auto growing = [](uint32_t row) { return Statistics{1, 2.0f + row, 0, 0}; };
  MrnfBench bench(make_cloud(100, 5, solid), 256, growing);
  StepBlock block = mrnf_block(5, 103);
  block.mrnf.growth_fraction = 0.5f;
  bench.refine(block);
  EXPECT_EQ(bench.rows_blocking().count(), 100u) << "growth is over";
  bench.set_statistics(100, growing);
  block = mrnf_block(9, 103);
  block.mrnf.modes |= kMrnfGrows;
  block.mrnf.growth_fraction = 0.5f;
  bench.refine(block);
  EXPECT_EQ(bench.rows_blocking().count(), 103u);
  bench.set_statistics(103, growing);
  block.transaction = 13;
  bench.refine(block);
  EXPECT_EQ(bench.rows_blocking().count(), 103u);
  EXPECT_EQ(mrnf_row_bound(100, 1000, 0.5f, true), 150u);
  EXPECT_EQ(mrnf_row_bound(100, 103, 0.5f, true), 103u);
  EXPECT_EQ(mrnf_row_bound(100, 1000, 0.5f, false), 100u);
}

TEST(MrnfRefine, ARefinementWithoutRoomClosesTheGateAndItsReplayIsAsIfThereHadBeenRoom) {
  const GaussianCloud cloud = make_cloud(640, 7, solid);
  const auto growing = [](uint32_t row) { return Statistics{1, 2.0f + row, row % 3 * 1.0f, 0}; };
  MrnfBench roomy(cloud, 1024, growing), tight(cloud, 640, growing);
  StepBlock block = mrnf_block(5, 5000);
  block.mrnf.modes |= kMrnfGrows;
  block.mrnf.growth_fraction = 0.1f;
  block.mrnf.scale_decay = 0.002f;
  roomy.refine(block);
  const Rows before = tight.rows_blocking();
  tight.refine(block);
  const Rows refused = tight.rows_blocking();
  EXPECT_TRUE(same_rows(before, refused));
  EXPECT_EQ(tight.statistics_blocking(640)[1], 2.0f);
  EXPECT_EQ(refused.control.gate.closed, 1u);
  EXPECT_EQ(refused.control.gate.need_rows, 704u);
  grow_rows(tight.model, 704);
  tight.make_row_ids();
  reopen_gate(tight.model, 1);
  block.epoch = 1;
  tight.refine(block);
  EXPECT_EQ(tight.rows_blocking().count(), 704u);
  EXPECT_TRUE(same_rows(roomy.rows_blocking(), tight.rows_blocking()));
  EXPECT_EQ(roomy.statistics_blocking(704), tight.statistics_blocking(704));
}

TEST(MrnfRefine, ChangesNothingBehindAClosedGate) {
  const auto opacity = [](uint32_t row) { return row % 2 ? 0.001 : 0.5; };
  MrnfBench bench(make_cloud(100, 7, opacity), 128, [](uint32_t) {
    return Statistics{1, 2, 3, 0.5f};
  });
  StepBlock stale = mrnf_block(5, 1000);
  stale.epoch = 3;  // not the gate's
  stale.mrnf.modes |= kMrnfGrows | kMrnfBounds | kMrnfNoise;
  stale.mrnf.growth_fraction = 0.5f;
  stale.mrnf.opacity_decay = stale.mrnf.scale_decay = 0.1f;
  stale.noise_scale = 1;
  const Rows before = bench.rows_blocking();
  const auto statistics = bench.statistics_blocking(100);
  bench.refine(stale);
  const Tensor step = upload_step_block(*bench.device, stale);
  decide(bench.model, step, false);
  mrnf_noise(bench.model, step);
  const Rows after = bench.rows_blocking();
  EXPECT_TRUE(same_rows(before, after));
  EXPECT_EQ(bench.statistics_blocking(100), statistics);
  EXPECT_EQ(after.control.bounds.valid, 0u);
  EXPECT_EQ(after.control.gate.committed, kNoTransaction);
}

TEST(MrnfRefine, IsAFunctionOfSeedAndStepForAnyNumberOfThreads) {
  const auto opacity = [](uint32_t row) { return row % 3 ? 0.4 : 0.001; };
  const GaussianCloud cloud = make_cloud(9000, 8, opacity);
  const auto refined = [&](const char* device, uint64_t transaction, uint64_t seed) {
    MrnfBench bench(
        cloud, 10000,
        [](uint32_t row) {
          return Statistics{1, 0.5f + row % 7, row % 11 * 0.1f, 0};
        },
        device);
    StepBlock block = mrnf_block(transaction, 20000, seed);
    block.mrnf.modes |= kMrnfGrows;
    block.mrnf.growth_fraction = 0.1f;
    bench.refine(block);
    return bench.rows_blocking();
  };
  const Rows one = refined("cpu:1", 5, 42);
  EXPECT_TRUE(same_rows(one, refined("cpu:3", 5, 42)));
  EXPECT_FALSE(same_rows(one, refined("cpu:1", 9, 42)));
  EXPECT_FALSE(same_rows(one, refined("cpu:1", 5, 43)));
}

TEST(MrnfDecay, TakesOpacityFromRowsThatWereSeenAndScaleFromAll) {
  MrnfBench bench(make_cloud(100, 9, solid), 128, [](uint32_t row) {
    return Statistics{row % 2 ? 1.0f : 0.0f, 0, 0, 0.3f};
  });
  const Rows before = bench.rows_blocking();
  StepBlock block = mrnf_block(5, 1000);
  block.mrnf.opacity_decay = 0.004f;
  block.mrnf.scale_decay = 0.002f;
  bench.refine(block);
  const Rows after = bench.rows_blocking();
  for (uint64_t row = 0; row < 100; ++row) {
    EXPECT_NEAR(after.opacity(row), before.opacity(row) - (row % 2 ? 0.004 : 0), 1e-6) << row;
    for (uint32_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(after.geometry(row, kLaneScale + k),
                  before.geometry(row, kLaneScale + k) + std::log(0.998), 1e-6);
    }
    EXPECT_EQ(after.row_of(1, row), before.row_of(1, row)) << "moments stay";
  }
  EXPECT_TRUE(is_zero(bench.statistics_blocking(100))) << "a new window begins";
}

// A model of many rows at the origin whose bounds are valid.
void set_size(MrnfBench& bench, float size) {
  const Ticket ticket = read_later(bench.model.control);
  bench.device->wait_blocking(bench.device->submit(), {WaitReason::Test, "test.size"}).or_raise();
  auto control = ticket.as<Control>();
  control.bounds.valid = 1;
  control.bounds.median_size = size;
  std::vector<uint32_t> words(sizeof(control) / 4);
  std::memcpy(words.data(), &control, sizeof(control));
  bench.model.control.upload(words);
}

void noise(MrnfBench& bench, StepBlock block, float scale, uint32_t modes = kMrnfOn | kMrnfNoise) {
  block.noise_scale = scale;
  block.mrnf.modes = modes;
  const Tensor step = upload_step_block(*bench.device, block);
  decide(bench.model, step, false);
  mrnf_noise(bench.model, step);
  commit(bench.model, step, CommitMode::Step);
}

TEST(MrnfNoise, IsRoundAndAsLargeAsTheFormulaSays) {
  constexpr uint32_t kRows = 20000;
  GaussianCloud cloud = make_cloud(kRows, 10, [](uint32_t) { return 0.01; });
  std::ranges::fill(cloud.means, 0.0f);
  MrnfBench bench(cloud, kRows, seen);
  set_size(bench, 3);
  noise(bench, mrnf_block(40, kRows), 0.2f);
  const Rows after = bench.rows_blocking();
  const double sigma = 3 * 0.2 * std::pow(0.99, 150);
  for (uint32_t k = 0; k < 3; ++k) {
    double mean = 0, variance = 0;
    for (uint64_t row = 0; row < kRows; ++row) {
      mean += double{after.geometry(row, k)} / kRows;
      variance += double{after.geometry(row, k)} * after.geometry(row, k) / kRows;
    }
    EXPECT_NEAR(mean, 0, 4 * sigma / std::sqrt(kRows));
    EXPECT_NEAR(variance, sigma * sigma, 4 * sigma * sigma * std::sqrt(2.0 / kRows));
  }
}

TEST(MrnfNoise, MovesFaintRowsThatWereSeenByAtMostTheMedianSize) {
  MrnfBench bench(make_cloud(300, 10, [](uint32_t row) { return row % 3 == 2 ? 0.9 : 0.01; }), 320,
                  [](uint32_t row) {
                    return Statistics{row % 3 == 1 ? 0.0f : 1.0f, 0, 0, 0};
                  });
  set_size(bench, 0.5f);
  const Rows before = bench.rows_blocking();
  noise(bench, mrnf_block(40, 300), 10);
  const Rows after = bench.rows_blocking();
  float most = 0;
  for (uint64_t row = 0; row < 300; ++row) {
    EXPECT_EQ(after.row_of(0, row) == before.row_of(0, row), row % 3 != 0) << row;
    for (uint32_t k = 0; k < 3; ++k) {
      most = std::max(most, std::abs(after.geometry(row, k) - before.geometry(row, k)));
    }
  }
  EXPECT_NEAR(most, 0.5f, 1e-6);
}

TEST(MrnfNoise, IsNoneWithoutBoundsOrWhereTheStepAsksForNone) {
  MrnfBench bench(make_cloud(10, 10, [](uint32_t) { return 0.01; }), 32, seen);
  const Rows before = bench.rows_blocking();
  noise(bench, mrnf_block(40, 10), 1);
  set_size(bench, 1);
  noise(bench, mrnf_block(44, 10), 1, kMrnfOn);
  EXPECT_TRUE(same_rows(before, bench.rows_blocking()));
}

// Bounds after mrnf_begin() with a hull around (1, 2, 3).
SceneBounds bounds_blocking(const GaussianCloud& cloud) {
  MrnfBench bench(cloud, cloud.count() + 64, seen);
  const float centre[3] = {1, 2, 3};
  mrnf_begin(bench.model, bench.row_ids, centre, 4, 7);
  const Control control = bench.rows_blocking().control;
  EXPECT_EQ(control.gate.committed, 0u);
  EXPECT_EQ(control.bounds.hull_centre[1], 2);
  EXPECT_EQ(control.bounds.hull_radius, 4);
  return control.bounds;
}

TEST(MrnfBounds, AreTheBoxOfPercentilesOfTheMeansAndTheMedianSize) {
  GaussianCloud cloud = make_cloud(1001, 11, solid);
  for (uint32_t i = 0; i < 1001; ++i) {
    cloud.means[3 * i] *= 10;
    cloud.means[3 * i + 1] = cloud.means[3 * i + 1] * 2 - 5;
  }
  cloud.means[0] = 1e6f;  // an outlier changes nothing
  const SceneBounds bounds = bounds_blocking(cloud);
  EXPECT_EQ(bounds.valid, 1u);
  std::array<float, 3> half;
  for (uint32_t k = 0; k < 3; ++k) {
    std::vector<float> means;
    for (uint32_t i = 0; i < 1001; ++i) means.push_back(cloud.means[3 * i + k]);
    std::ranges::sort(means);
    half[k] = 0.5f * (means[900] - means[100]);
    EXPECT_EQ(bounds.half_extent[k], half[k]);
    EXPECT_EQ(bounds.centre[k], 0.5f * (means[900] + means[100]));
  }
  std::ranges::sort(half);
  EXPECT_EQ(bounds.median_size, 2 * half[1]);
  std::vector<double> extents;
  for (uint32_t i = 0; i < 1001; ++i) {
    const float* s = &cloud.log_scales[3 * i];
    extents.push_back(std::exp((double{s[0]} + s[1] + s[2]) / 3));
  }
  std::ranges::sort(extents);
  EXPECT_NEAR(bounds.median_extent, extents[500], 1e-5 * extents[500]);
}

TEST(MrnfBounds, OfALineAreItsLengthAndOfAPointNone) {
  GaussianCloud cloud = make_cloud(101, 11, solid);
  for (uint32_t i = 0; i < 101; ++i) {
    cloud.means[3 * i] = static_cast<float>(i);
    cloud.means[3 * i + 1] = cloud.means[3 * i + 2] = 0;
  }
  EXPECT_EQ(bounds_blocking(cloud).median_size, 80);
  for (float& mean : cloud.means) mean = 3;
  const SceneBounds bounds = bounds_blocking(cloud);
  EXPECT_EQ(bounds.valid, 0u);
  EXPECT_EQ(bounds.median_size, 7) << "what was given stands in";
}

TEST(MrnfBounds, LeaveFreeRowsOutWhenARefinementMeasuresThemAgain) {
  const auto opacity = [](uint32_t row) { return row < 40 ? 0.001 : 0.5; };
  GaussianCloud cloud = make_cloud(141, 12, opacity);
  for (uint32_t i = 0; i < 40; ++i) cloud.means[3 * i] = 100;
  MrnfBench bench(cloud, 160, unseen);
  bench.refine(mrnf_block(5, 1000));
  StepBlock block = mrnf_block(9, 1000);
  block.mrnf.modes |= kMrnfBounds;
  bench.refine(block);
  const Control control = bench.rows_blocking().control;
  EXPECT_EQ(control.counts.free, 40u);
  std::vector<float> means;
  for (uint32_t i = 40; i < 141; ++i) means.push_back(cloud.means[3 * i]);
  std::ranges::sort(means);
  EXPECT_EQ(control.bounds.half_extent[0], 0.5f * (means[90] - means[10]));
}

}  // namespace
}  // namespace millrace::test
