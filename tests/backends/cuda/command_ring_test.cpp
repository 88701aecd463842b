// The ring of commands keeps their order while it wraps and grows. Needs no device.
#include "backends/cuda/command_ring.h"

#include <gtest/gtest.h>

namespace millrace::cuda {
namespace {

TEST(CommandRing, KeepsTheOrderWhileItWrapsAndGrows) {
  CommandRing ring;
  uint64_t pushed = 0, popped = 0;
  const auto push = [&] {
    Command command;
    command.bytes = pushed++;
    ring.push_back(command);
  };
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 20 + round; ++i) push();
    for (int i = 0; i < 15 + round && !ring.empty(); ++i) {
      ASSERT_EQ(ring.front().bytes, popped++);
      ring.pop_front();
    }
    ASSERT_EQ(ring.size(), pushed - popped);
  }
  for (; !ring.empty(); ring.pop_front()) ASSERT_EQ(ring.front().bytes, popped++);
  EXPECT_EQ(popped, pushed);
}

}  // namespace
}  // namespace millrace::cuda
