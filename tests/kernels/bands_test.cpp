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
  BandTable bands;
  std::byte* const buffers[] = {reinterpret_cast<std::byte*>(tile_counts.data()),
                                reinterpret_cast<std::byte*>(&bands)};
  const uint64_t bytes[] = {tile_counts.size() * 4, sizeof(bands)};
  kernels::plan_bands({1, reinterpret_cast<const std::byte*>(&params), buffers, bytes});
  return bands;
}

std::vector<uint32_t> borders(const BandTable& bands) {
  return {bands.first_tile, bands.first_tile + bands.n_needed + 1};
}

TEST(Bands, AreTheFewestRunsOfTilesThatFit) {
  const BandTable bands = plan({3, 4, 2, 5, 1, 1, 7}, 7);
  // 3 + 4, 2 + 5, 1 + 1, 7
  EXPECT_EQ(borders(bands), (std::vector<uint32_t>{0, 2, 4, 6, 7}));
}

TEST(Bands, OfAFrameThatFitsIsOne) {
  const BandTable bands = plan({3, 0, 4}, 7);
  EXPECT_EQ(borders(bands), (std::vector<uint32_t>{0, 3}));
  EXPECT_EQ(bands.instances[0], 7u);
}

TEST(Bands, CountTheInstancesOfEach) {
  const BandTable bands = plan({3, 4, 2, 5}, 7);
  EXPECT_EQ(bands.instances[0], 7u);
  EXPECT_EQ(bands.instances[1], 7u);
}

TEST(Bands, BeyondTheLastAreEmpty) {
  const BandTable bands = plan({3, 4, 2}, 7);
  ASSERT_EQ(bands.n_needed, 2u);
  EXPECT_EQ(bands.instances[2], 0u);
  EXPECT_EQ(bands.first_tile[3], 3u);
  EXPECT_EQ(bands.first_tile[kMaxBands], 3u);
}

TEST(Bands, NeedMoreThanTheTableHoldsIsStillCounted) {
  const BandTable bands = plan(std::vector<uint32_t>(kMaxBands + 5, 7), 7);
  EXPECT_EQ(bands.n_needed, kMaxBands + 5);
}

TEST(Bands, OfAnEmptyFrameIsOne) { EXPECT_EQ(plan({0, 0}, 7).n_needed, 1u); }

TEST(Bands, ThereAreNoneWhenOneTileIsTooMuch) { EXPECT_EQ(plan({3, 8, 2}, 7).n_needed, kNoBands); }

}  // namespace
}  // namespace millrace::test
