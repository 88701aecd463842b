// WaitLedger: what is recorded, by site and reason.
#include "device/wait_ledger.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(WaitLedger, AConditionThatHoldsIsNoWait) {
  WaitLedger ledger;
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  ledger.wait_blocking(lock, changed, [] { return true; }, {WaitReason::UserRead, "test.none"});
  EXPECT_TRUE(ledger.records().empty());
}

TEST(WaitLedger, AddsWaitsOfOneSiteAndKeepsReasonsApart) {
  WaitLedger ledger;
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  const auto never = [] { return false; };
  const std::chrono::milliseconds limit(1);
  const WaitSite pacing{WaitReason::Pacing, "test.pacing"};
  const WaitSite decode{WaitReason::Decode, "test.decode"};
  EXPECT_FALSE(ledger.wait_for_blocking(lock, changed, never, limit, pacing));
  EXPECT_FALSE(ledger.wait_for_blocking(lock, changed, never, limit, decode));
  EXPECT_FALSE(ledger.wait_for_blocking(lock, changed, never, limit, pacing));
  ledger.add_device_dry(pacing, 42);
  const auto records = ledger.records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].site, "test.pacing");
  EXPECT_EQ(records[0].count, 2u);
  EXPECT_GE(records[0].blocked_ns, 2'000'000u);
  EXPECT_EQ(records[0].device_dry_ns, 42u);
  EXPECT_TRUE(records[0].where.starts_with("tests/device/wait_ledger_test.cpp:"))
      << records[0].where;
  EXPECT_EQ(records[1].device_dry_ns, 0u);
  EXPECT_EQ(ledger.count(WaitReason::Pacing), 2u);
  EXPECT_EQ(ledger.count_except_pacing(), 1u);
}

TEST(WaitLedger, PacingForAPointPastTheLimitIsRecordedAsAWaitThatCounts) {
  WaitLedger ledger;
  const WaitSite pacing{WaitReason::Pacing, "test.pacing"};
  EXPECT_EQ(ledger.recorded_as(pacing, UINT64_MAX).reason, WaitReason::Pacing) << "no limit yet";
  ledger.limit_pacing(7);
  EXPECT_EQ(ledger.recorded_as(pacing, 7).reason, WaitReason::Pacing);
  const WaitSite early = ledger.recorded_as(pacing, 8);
  EXPECT_EQ(early.reason, WaitReason::UserRead);
  EXPECT_STREQ(early.name, "test.pacing");
  EXPECT_EQ(early.where.line(), pacing.where.line());
  const WaitSite decode{WaitReason::Decode, "test.decode"};
  EXPECT_EQ(ledger.recorded_as(decode, 8).reason, WaitReason::Decode);
}

TEST(WaitLedger, EveryReasonHasAName) {
  for (int i = 0; i < kWaitReasonCount; ++i) {
    EXPECT_STRNE(to_string(static_cast<WaitReason>(i)), "Unknown");
  }
}

}  // namespace
}  // namespace millrace
