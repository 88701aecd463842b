// Cutting a frame into bands.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/splat_params.h"

namespace millrace::test {
namespace {

BandTable plan(std::vector<uint32_t> tile_counts, uint64_t capacity) {
  FrameParams params = {};
  params.tiles_x = static_cast<uint32_t>(tile_counts.size());
  params.tiles_y = 1;
  params.capacity = capacity;
  BandTable table;
  std::byte* const buffers[] = {reinterpret_cast<std::byte*>(tile_counts.data()),
                                reinterpret_cast<std::byte*>(&table)};
  const uint64_t bytes[] = {tile_counts.size() * 4, sizeof(table)};
  kernels::plan_bands({1, reinterpret_cast<const std::byte*>(&params), buffers, bytes});
  return table;
}

std::vector<uint32_t> borders(const BandTable& table) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < table.n_needed; ++i) all.push_back(table.bands[i].first_tile);
  all.push_back(table.bands[table.n_needed - 1].last_tile);
  return all;
}

TEST(Bands, AreRunsOfTilesThatFit) {
  // 3 + 4, 2 + 5, 1 + 1, 7
  EXPECT_EQ(borders(plan({3, 4, 2, 5, 1, 1, 7}, 7)), (std::vector<uint32_t>{0, 2, 4, 6, 7}));
}

TEST(Bands, OfAFrameThatFitsAreOne) {
  const BandTable table = plan({3, 0, 4}, 7);
  EXPECT_EQ(borders(table), (std::vector<uint32_t>{0, 3}));
  EXPECT_EQ(table.bands[0].instances, 7u);
  EXPECT_EQ(table.bands[0].is_front, 1u);
  EXPECT_EQ(table.bands[0].is_back, 1u);
}

TEST(Bands, CountTheInstancesOfEach) {
  const BandTable table = plan({3, 4, 2, 4}, 7);
  EXPECT_EQ(table.bands[0].instances, 7u);
  EXPECT_EQ(table.bands[1].instances, 6u);
  EXPECT_EQ(table.bands[1].mirror, 1u);
}

TEST(Bands, BeyondTheLastAreEmpty) {
  const BandTable table = plan({3, 4, 2}, 7);
  ASSERT_EQ(table.n_needed, 2u);
  for (const uint32_t i : {2u, kMaxBands - 1}) {
    EXPECT_EQ(table.bands[i].instances, 0u);
    EXPECT_EQ(table.bands[i].first_tile, table.bands[i].last_tile);
  }
}

TEST(Bands, AreCountedBeyondTheEndOfTheTable) {
  EXPECT_EQ(plan(std::vector<uint32_t>(kMaxBands + 5, 7), 7).n_needed, kMaxBands + 5);
}

TEST(Bands, OfAnEmptyFrameAreOne) { EXPECT_EQ(plan({0, 0}, 7).n_needed, 1u); }

TEST(Bands, CutATileThatDoesNotFitIntoSlicesThatComeBackToFrontInTheBackwardPass) {
  const BandTable table = plan({3, 18, 2}, 7);
  ASSERT_EQ(table.n_needed, 5u);
  EXPECT_EQ(borders(table), (std::vector<uint32_t>{0, 1, 1, 1, 2, 3}));
  const uint32_t ranks[] = {0, 7, 14}, counts[] = {7, 7, 4}, mirrors[] = {3, 2, 1};
  for (uint32_t slice = 0; slice < 3; ++slice) {
    const Band& band = table.bands[1 + slice];
    EXPECT_EQ(band.last_tile, 2u);
    EXPECT_EQ(band.rank, ranks[slice]);
    EXPECT_EQ(band.instances, counts[slice]);
    EXPECT_EQ(band.is_front, slice == 0 ? 1u : 0u);
    EXPECT_EQ(band.is_back, slice == 2 ? 1u : 0u);
    EXPECT_EQ(band.mirror, mirrors[slice]);
  }
}

}  // namespace
}  // namespace millrace::test
