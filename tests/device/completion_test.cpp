// Completion: actions in order of their points, waits, and the thread that follows a driver.
#include "device/completion.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace {
namespace {

using Log = std::vector<uint64_t>;

void append(void* context, uint64_t argument) { static_cast<Log*>(context)->push_back(argument); }

TEST(Completion, RunsActionsInTheOrderOfTheirPoints) {
  Completion completion;
  Log log;
  completion.after(5, append, &log, 50);
  completion.after(2, append, &log, 20);
  completion.after(2, append, &log, 21);
  completion.after(9, append, &log, 90);
  completion.advance(1);
  EXPECT_EQ(log, Log{});
  completion.advance(6);
  EXPECT_EQ(log, (Log{20, 21, 50}));
  completion.after(3, append, &log, 30);
  EXPECT_EQ(log, (Log{20, 21, 50, 30})) << "a passed point's action runs at once";
  completion.advance(9);
  EXPECT_EQ(log.back(), 90u);
}

TEST(Completion, AWaitEndsWithItsPointAndNotBefore) {
  Completion completion;
  WaitLedger ledger;
  // The loop stands for a device: each wake passes one point more.
  WorkerLoop* device = nullptr;
  WorkerLoop loop([&] {
    const Point next = completion.passed() + 1;
    completion.advance(next);
    if (next < 100) device->wake();
  });
  device = &loop;
  loop.wake();
  const WaitSite site{WaitReason::Test, "test.wait"};
  EXPECT_TRUE(completion.wait_blocking(100, ledger, site));
  EXPECT_EQ(completion.passed(), 100u);
  EXPECT_LE(ledger.count(WaitReason::Test), 1u);
}

TEST(Completion, ABoundedWaitGivesUp) {
  Completion completion;
  WaitLedger ledger;
  completion.advance(3);
  const WaitSite site{WaitReason::Shutdown, "test.bound"};
  EXPECT_TRUE(completion.wait_blocking(3, ledger, site, std::chrono::milliseconds(1)));
  EXPECT_TRUE(ledger.records().empty());
  EXPECT_FALSE(completion.wait_blocking(4, ledger, site, std::chrono::milliseconds(1)));
  EXPECT_EQ(ledger.count(WaitReason::Shutdown), 1u);
}

TEST(Completion, ItsThreadFollowsTheDriver) {
  Completion completion;
  WaitLedger ledger;
  std::atomic<Point> driver = 0;
  CompletionThread thread(&completion, [&driver](Point) { return driver.load(); });
  for (Point point = 1; point <= 20; ++point) {
    driver = point;
    thread.wake();
    EXPECT_TRUE(completion.wait_blocking(point, ledger, {WaitReason::Test, "test.follow"}));
  }
}

}  // namespace
}  // namespace millrace
