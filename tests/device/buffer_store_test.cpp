// BufferStore: which block a buffer gets, what guards it, and where uploads are staged.
#include "device/buffer_store.h"

#include <gtest/gtest.h>

#include <map>

namespace millrace {
namespace {

/// Hands out numbers and sees that each comes back once.
class CountingSource : public BlockSource {
 public:
  Result<uint64_t> create(uint64_t bytes) override {
    live[++last_] = bytes;
    return last_;
  }
  void destroy(uint64_t handle, uint64_t bytes) override {
    EXPECT_EQ(live.at(handle), bytes);
    live.erase(handle);
  }

  std::map<uint64_t, uint64_t> live;

 private:
  uint64_t last_ = 0;
};

class Store : public ::testing::Test {
 protected:
  StoredBuffer& at(BufferId id) { return *store->find(id, "test").or_raise(); }

  CountingSource source;
  std::unique_ptr<BufferStore> store = std::make_unique<BufferStore>(
      &source, uint64_t{1} << 20, BufferStore::make_staging(source, 4096).or_raise(), "test");
};

TEST_F(Store, GivesEverythingBackAtItsEnd) {
  const BufferId kept = store->allocate(100, "kept", 0).or_raise();
  const BufferId freed = store->allocate(100, "freed", 0).or_raise();
  EXPECT_TRUE(store->release(freed));
  EXPECT_FALSE(store->release(freed));
  std::vector<std::string> labels;
  store->for_each_live([&](const std::string& label, uint64_t bytes) {
    labels.push_back(label);
    EXPECT_EQ(bytes, 100u);
  });
  EXPECT_EQ(labels, std::vector<std::string>{"kept"});
  EXPECT_TRUE(store->find(kept, "test").ok());
  store = nullptr;
  EXPECT_TRUE(source.live.empty());
}

TEST_F(Store, ABlockStillInUseKeepsTheHostOutOfItsNextBuffer) {
  const BufferId a = store->allocate(100, "a", 0).or_raise();
  BufferStore::note({a, 0, 100}, &at(a), Access::Write, 7, 0);
  const uint64_t block = at(a).block.handle;
  EXPECT_TRUE(store->release(a));
  const BufferId b = store->allocate(100, "b", 0).or_raise();
  ASSERT_EQ(at(b).block.handle, block);
  EXPECT_EQ(at(b).hazards.last_use(0, 100), 7u);
  EXPECT_EQ(at(b).hazards.last_write(0, 100), 0u) << "no queued work writes the new buffer";
}

TEST_F(Store, ABlockThatIsIdleBringsNoHazardWithIt) {
  const BufferId a = store->allocate(100, "a", 0).or_raise();
  BufferStore::note({a, 0, 100}, &at(a), Access::ReadWrite, 7, 0);
  EXPECT_TRUE(store->release(a));
  const BufferId b = store->allocate(100, "b", 7).or_raise();
  EXPECT_EQ(at(b).hazards.last_use(0, 100), 0u);
}

TEST_F(Store, ScratchIsSharedByCommandsOneAfterTheOtherAndWithNoBufferInUse) {
  const BufferId a = store->allocate(100, "a", 0).or_raise();
  const uint64_t first = store->take_scratch(100, 1, 0).or_raise().handle;
  EXPECT_NE(first, at(a).block.handle);
  EXPECT_EQ(store->take_scratch(100, 2, 0).or_raise().handle, first);
}

TEST(StoreWithoutStaging, GivesBackNothingThatItNeverHad) {
  CountingSource source;
  { const BufferStore store(&source, uint64_t{1} << 20, Block{}, "test"); }
  EXPECT_TRUE(source.live.empty());
}

TEST_F(Store, NotesReadsAndWritesApart) {
  const BufferId a = store->allocate(100, "a", 0).or_raise();
  BufferStore::note({a, 0, 40}, &at(a), Access::Read, 3, 0);
  BufferStore::note({a, 40, 40}, &at(a), Access::Write, 4, 0);
  EXPECT_EQ(at(a).hazards.last_write(0, 40), 0u);
  EXPECT_EQ(at(a).hazards.last_use(0, 40), 3u);
  EXPECT_EQ(at(a).hazards.last_write(0, 80), 4u);
}

TEST_F(Store, AStaleIdIsAnErrorThatNamesTheDeviceAndTheVerb) {
  const BufferId a = store->allocate(100, "a", 0).or_raise();
  store->release(a);
  const auto found = store->find(a, "upload");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message.find("test: upload names buffer"), 0u) << found.error().message;
}

TEST_F(Store, StagesInTheRingUntilItIsFullAndThenInBlocksThatHaveCompleted) {
  const uint64_t ring = source.live.begin()->first;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(store->stage(1024, 1, 0).or_raise().handle, ring);
  const StagedBytes first = store->stage(1024, 2, 0).or_raise();
  EXPECT_NE(first.handle, ring);
  const StagedBytes second = store->stage(1024, 3, 0).or_raise();
  EXPECT_NE(second.handle, first.handle) << "a block that a queued copy reads was handed out";
  EXPECT_EQ(store->stage(2000, 4, 3).or_raise().handle == ring, false) << "too large for the ring";
  EXPECT_EQ(store->stage(1024, 4, 3).or_raise().handle, ring);
}

}  // namespace
}  // namespace millrace
