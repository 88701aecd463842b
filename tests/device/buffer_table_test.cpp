// BufferTable: ids that go stale, and slots that are used again.
#include "device/buffer_table.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(BufferTable, FindsLiveBuffersOnly) {
  BufferTable<int> table;
  const BufferId a = table.insert();
  const BufferId b = table.insert();
  *table.find(a) = 1;
  *table.find(b) = 2;
  EXPECT_EQ(*table.find(a), 1);
  EXPECT_EQ(table.size(), 2u);
  table.erase(a);
  EXPECT_EQ(table.find(a), nullptr);
  EXPECT_EQ(*table.find(b), 2);
  EXPECT_EQ(table.find({}), nullptr);
  EXPECT_EQ(table.find({UINT32_MAX}), nullptr);
}

TEST(BufferTable, AStaleIdDoesNotReachTheSlotsNextBuffer) {
  BufferTable<int> table;
  BufferId old = table.insert();
  for (int i = 0; i < 10'000; ++i) {
    table.erase(old);
    const BufferId next = table.insert();
    ASSERT_TRUE(next);
    ASSERT_EQ(table.find(old), nullptr);
    old = next;
  }
  EXPECT_EQ(table.size(), 1u);
}

TEST(BufferTable, ReusesSlotsOldestFirst) {
  BufferTable<int> table;
  const BufferId a = table.insert();
  const BufferId b = table.insert();
  *table.find(a) = 10;
  *table.find(b) = 20;
  table.erase(a);
  table.erase(b);
  EXPECT_EQ(*table.find(table.insert()), 10);
  EXPECT_EQ(*table.find(table.insert()), 20);
}

}  // namespace
}  // namespace millrace
