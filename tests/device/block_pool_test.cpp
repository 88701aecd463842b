// BlockPool: which block serves a request, limits, trimming and counts.
#include "device/block_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace millrace {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// A source that hands out numbers and can be told to fail.
class FakeSource : public BlockSource {
 public:
  Result<uint64_t> create(uint64_t bytes) override {
    if (n_failures > 0) {
      --n_failures;
      return Error{ErrorCode::OutOfMemory, "the source is empty"};
    }
    bytes_ += bytes;
    live.insert(++last_);
    return last_;
  }
  void destroy(uint64_t handle, uint64_t bytes) override {
    EXPECT_EQ(live.erase(handle), 1u);
    bytes_ -= bytes;
  }
  uint64_t bytes() const { return bytes_; }

  int n_failures = 0;
  std::set<uint64_t> live;

 private:
  uint64_t last_ = 0;
  uint64_t bytes_ = 0;
};

class Pool : public ::testing::Test {
 protected:
  Block take(uint64_t bytes, Point passed = 0) {
    return pool.take(bytes, "test", passed).or_raise();
  }

  FakeSource source;
  BlockPool pool{&source, 1024 * kMiB};
};

TEST_F(Pool, HandsOutCompletedBlocksFirst) {
  const Block a = take(1000);
  const Block b = take(1000);
  pool.give_back(b, 20);
  pool.give_back(a, 10);
  EXPECT_EQ(take(1000, 15).handle, a.handle) << "a has completed at 15, b has not";
  const Block c = take(1000, 15);
  EXPECT_EQ(c.handle, b.handle) << "a block in use is better than a new one";
  EXPECT_EQ(c.last_use, 20u);
}

TEST_F(Pool, TakesTheLongestIdleOfTheCompletedBlocks) {
  const Block a = take(1000);
  const Block b = take(1000);
  pool.give_back(b, 5);
  pool.give_back(a, 3);
  EXPECT_EQ(take(1000, 9).handle, a.handle);
  EXPECT_EQ(take(1000, 9).handle, b.handle);
}

TEST_F(Pool, WhatTheHostWritesAtOnceGetsNoBlockInUse) {
  const Block a = take(1000);
  pool.give_back(a, 10);
  const auto b = pool.take(1000, "staging", 9, BlockPool::Need::Completed);
  EXPECT_NE(b.value().handle, a.handle);
  const auto c = pool.take(1000, "staging", 10, BlockPool::Need::Completed);
  EXPECT_EQ(c.value().handle, a.handle);
}

TEST_F(Pool, BigBlocksServeRequestsUpToAQuarterSmaller) {
  const Block a = take(10 * kMiB);
  pool.give_back(a, 0);
  EXPECT_NE(take(7 * kMiB).handle, a.handle);
  EXPECT_EQ(take(8 * kMiB).handle, a.handle);
}

TEST_F(Pool, BlockSizesWasteAtMostAQuarter) {
  for (uint64_t bytes = 1; bytes < 8 * kMiB; bytes += bytes / 7 + 1) {
    const uint64_t block = BlockPool::block_bytes(bytes);
    EXPECT_GE(block, bytes);
    EXPECT_EQ(block % 256, 0u);
    EXPECT_LE(block, std::max<uint64_t>(256 + bytes, bytes + bytes / 4)) << bytes;
    EXPECT_EQ(BlockPool::block_bytes(block), block);
  }
}

TEST_F(Pool, TrimReturnsOnlyCompletedBlocks) {
  const Block a = take(kMiB);
  const Block b = take(kMiB);
  pool.give_back(a, 1);
  pool.give_back(b, 2);
  EXPECT_EQ(pool.trim(1), kMiB);
  EXPECT_EQ(source.live, std::set<uint64_t>{b.handle});
  EXPECT_EQ(pool.stats().reserved_bytes, source.bytes());
}

TEST_F(Pool, ARefusalOfTheSourceIsTriedOnceMoreAfterATrim) {
  pool.give_back(take(4 * kMiB), 0);
  source.n_failures = 1;
  EXPECT_TRUE(pool.take(kMiB, "test", 0).ok());
  EXPECT_EQ(source.live.size(), 1u) << "the free block was not given back first";
  source.n_failures = 2;
  const auto refused = pool.take(kMiB, "test", 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("the source is empty"), std::string::npos);
  EXPECT_EQ(pool.stats().in_use_bytes, kMiB);
}

TEST_F(Pool, FreeMemoryDoesNotGrowWithoutBound) {
  for (uint64_t i = 1; i < 200; ++i) pool.give_back(take(i * 2 * kMiB % (512 * kMiB) + kMiB, i), i);
  EXPECT_LE(source.bytes(), 640 * kMiB);
  EXPECT_EQ(pool.stats().reserved_bytes, source.bytes());
}

TEST_F(Pool, CountsByLabelWithPeaks) {
  const Block a = pool.take(100, "means", 0).or_raise();
  const Block b = pool.take(200, "means", 0).or_raise();
  const Block c = pool.take(300, "images", 0).or_raise();
  pool.give_back(a, 0);
  const MemoryStats stats = pool.stats();
  EXPECT_EQ(stats.in_use_bytes, 500u);
  EXPECT_EQ(stats.peak_in_use_bytes, 600u);
  EXPECT_EQ(stats.reserved_bytes, source.bytes());
  ASSERT_EQ(stats.by_label.size(), 2u);
  EXPECT_EQ(stats.by_label[0].label, "means");
  EXPECT_EQ(stats.by_label[0].bytes, 200u);
  EXPECT_EQ(stats.by_label[0].peak_bytes, 300u);
  EXPECT_EQ(stats.by_label[1].bytes, 300u);
  pool.give_back(b, 0);
  pool.give_back(c, 0);
}

}  // namespace
}  // namespace millrace
