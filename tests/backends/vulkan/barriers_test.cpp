// Barriers: only where declared ranges conflict since the last one.
#include "backends/vulkan/barriers.h"

#include <gtest/gtest.h>

namespace millrace::vulkan {
namespace {

/// Two buffers, and commands that use ranges of them; nothing ever passes.
class BarriersOfCommands : public ::testing::Test {
 protected:
  struct Use {
    StoredBuffer* buffer;
    uint64_t offset, bytes;
    Access access;
  };
  /// Whether the next command needs a barrier.
  bool record(const std::vector<Use>& uses) {
    for (const Use& use : uses) {
      barriers.use(*use.buffer, {{}, use.offset, use.bytes}, use.access);
    }
    for (const Use& use : uses) {
      BufferStore::note({{}, use.offset, use.bytes}, use.buffer, use.access, next, 0);
    }
    return barriers.take(next++);
  }

  StoredBuffer a, b;
  Barriers barriers;
  Point next = 1;
};

TEST_F(BarriersOfCommands, NoneBetweenCommandsThatShareNothing) {
  EXPECT_FALSE(record({{&a, 0, 64, Access::Write}}));
  EXPECT_FALSE(record({{&b, 0, 64, Access::Write}}));
  EXPECT_FALSE(record({{&a, 64, 64, Access::Write}})) << "another range of the same buffer";
}

TEST_F(BarriersOfCommands, NoneBetweenReaders) {
  EXPECT_FALSE(record({{&a, 0, 64, Access::Read}}));
  EXPECT_FALSE(record({{&a, 0, 64, Access::Read}, {&b, 0, 4, Access::Write}}));
}

TEST_F(BarriersOfCommands, OneBeforeAReaderOfWhatWasWritten) {
  EXPECT_FALSE(record({{&a, 0, 64, Access::Write}}));
  EXPECT_TRUE(record({{&a, 60, 4, Access::Read}}));
  EXPECT_FALSE(record({{&a, 0, 64, Access::Read}}))
      << "the barrier stands for all that came before";
}

TEST_F(BarriersOfCommands, OneBeforeAWriterOfWhatIsRead) {
  EXPECT_FALSE(record({{&a, 0, 64, Access::Read}}));
  EXPECT_TRUE(record({{&a, 0, 4, Access::Write}}));
}

TEST_F(BarriersOfCommands, OneBeforeASecondWriter) {
  EXPECT_FALSE(record({{&a, 0, 64, Access::Write}}));
  EXPECT_TRUE(record({{&a, 0, 64, Access::Write}}));
  EXPECT_TRUE(record({{&a, 0, 64, Access::ReadWrite}}));
}

TEST_F(BarriersOfCommands, ALateConflictIsFoundBehindAnEarlierBarrier) {
  EXPECT_FALSE(record({{&a, 0, 64, Access::Write}}));  // 1
  EXPECT_TRUE(record({{&a, 0, 64, Access::Write}}));   // 2, behind a barrier
  EXPECT_FALSE(record({{&b, 0, 64, Access::Write}}));  // 3
  EXPECT_TRUE(record({{&a, 0, 64, Access::Read}})) << "2 came after the barrier";
  EXPECT_FALSE(record({{&b, 0, 64, Access::Read}})) << "3 came before that one";
}

TEST_F(BarriersOfCommands, NoneForALaunchThatBindsARangeTwice) {
  EXPECT_FALSE(record({{&a, 0, 64, Access::Read}, {&a, 0, 64, Access::Write}}));
}

TEST_F(BarriersOfCommands, OneWhereMemoryIsUsedAgain) {
  EXPECT_FALSE(record({{&a, 0, 64, Access::Write}}));
  barriers.use(Point{1});
  EXPECT_TRUE(barriers.take(next++));
  barriers.use(Point{1});
  EXPECT_FALSE(barriers.take(next++));
}

}  // namespace
}  // namespace millrace::vulkan
