// The staging store takes from its ring first and from its pool where the ring has no room.
#include "device/staging_store.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

class Counting : public BlockSource {
 public:
  Result<uint64_t> create(uint64_t) override { return uint64_t{1000} + n_made++; }
  void destroy(uint64_t, uint64_t) override {}
  uint64_t n_made = 0;
};

class StagingStoreTest : public ::testing::Test {
 protected:
  Counting source;
  BlockPool pool{&source, 1 << 20};
  StagingStore store{&pool, Block{.handle = 7, .bytes = 4096, .requested = 4096}};
};

TEST_F(StagingStoreTest, TakesFromTheRingWhileThereIsRoom) {
  for (uint64_t i = 0; i < 4; ++i) {
    const StagedBytes staged = store.take(1024, 1, 0).or_raise();
    EXPECT_EQ(staged.handle, 7u);
    EXPECT_EQ(staged.offset, 1024 * i);
  }
  EXPECT_EQ(source.n_made, 0u);
}

TEST_F(StagingStoreTest, TakesABlockWhereTheRingIsFullAndTheRingAgainOnceItsPointPassed) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(store.take(1024, 5, 0).ok());
  EXPECT_EQ(store.take(1024, 6, 4).or_raise().handle, 1000u);
  EXPECT_EQ(store.take(1024, 7, 5).or_raise().handle, 7u);
}

TEST_F(StagingStoreTest, NeverReusesABlockWhoseCommandHasNotPassed) {
  EXPECT_EQ(store.take(3000, 1, 0).or_raise().handle, 1000u);
  EXPECT_EQ(store.take(3000, 2, 0).or_raise().handle, 1001u);
  EXPECT_EQ(store.take(3000, 3, 1).or_raise().handle, 1000u);
}

}  // namespace
}  // namespace millrace
