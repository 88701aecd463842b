// The verdict on a run: one case for each, and what decides between two.
#include "train/why_slow.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

/// 1,000 steps of 10 ms that the device computed nearly all the time.
SlowFigures busy_device() {
  SlowFigures figures;
  figures.n_steps = 1000;
  figures.seconds = 10;
  figures.dry_seconds = 0.05;
  figures.n_pacing_waits = 1000;
  figures.queued_steps = 2.9;
  figures.n_threads = 2;
  return figures;
}

void expect_verdict(const SlowFigures& figures, SlowVerdict verdict, const char* said) {
  const WhySlow why = why_slow(figures);
  EXPECT_EQ(why.verdict, verdict) << why.line();
  EXPECT_NE(why.sentence.find(said), std::string::npos) << why.sentence;
  EXPECT_TRUE(why.line().starts_with(std::string(to_string(verdict)) + ": ")) << why.line();
}

TEST(WhySlow, ABusyDeviceIsDeviceBoundAndItsShareIsSaid) {
  expect_verdict(busy_device(), SlowVerdict::DeviceBound, "99.5 % of the time on 2 threads");
}

TEST(WhySlow, ThreadsAreToldOfOnlyWhereTheyMatter) {
  SlowFigures figures = busy_device();
  figures.n_threads = 0;
  EXPECT_EQ(why_slow(figures).sentence.find("thread"), std::string::npos);
}

TEST(WhySlow, WaitingForDecodesIsDecodeBoundAndSaysHowMuchMemoryWouldDo) {
  SlowFigures figures = busy_device();
  figures.decode_seconds = 3;
  figures.dry_seconds = 2.9;
  figures.all_resident = false;
  figures.photograph_bytes = 100 << 20;
  expect_verdict(figures, SlowVerdict::DecodeBound, "30 % of the time");
  expect_verdict(figures, SlowVerdict::DecodeBound, "--image-cache-bytes 101M");
}

TEST(WhySlow, AnyOtherWaitIsAHostWaitAndItsSiteIsNamed) {
  SlowFigures figures = busy_device();
  figures.wait_seconds = 0.5;
  figures.n_waits = figures.top_count = 250;
  figures.top_site = "loss.item";
  figures.top_reason = "UserRead";
  expect_verdict(figures, SlowVerdict::HostWait, "loss.item (UserRead, 250 times)");
}

TEST(WhySlow, PhotographsThatComeAgainAndAgainAreMemoryBound) {
  SlowFigures figures = busy_device();
  figures.reload_seconds = 2;
  figures.n_reloads = 1500;
  figures.all_resident = false;
  figures.photograph_bytes = 300 << 20;
  expect_verdict(figures, SlowVerdict::MemoryBound, "20 % of the time");
  expect_verdict(figures, SlowVerdict::MemoryBound, "1.5 a step");
  expect_verdict(figures, SlowVerdict::MemoryBound, "--image-cache-bytes 301M");
}

TEST(WhySlow, ADeviceThatRunsDryWhileTheHostPacesItselfIsPacing) {
  SlowFigures figures = busy_device();
  figures.dry_seconds = 1;
  expect_verdict(figures, SlowVerdict::Pacing, "10.0 % of the time although the host waited");
}

TEST(WhySlow, ADeviceThatRunsDryBecauseTheHostIsSlowIsToldApart) {
  SlowFigures figures = busy_device();
  figures.dry_seconds = 1;
  figures.n_pacing_waits = 10;
  expect_verdict(figures, SlowVerdict::Pacing, "records steps more slowly");
}

TEST(WhySlow, TimeThatTheDeviceWasDryBecauseTheHostWaitedIsNotPacing) {
  SlowFigures figures = busy_device();
  figures.decode_seconds = 0.4;  // 4 %: below its threshold
  figures.dry_seconds = 0.5;
  EXPECT_EQ(why_slow(figures).verdict, SlowVerdict::DeviceBound);
}

TEST(WhySlow, TheLargestShareWins) {
  SlowFigures figures = busy_device();
  figures.all_resident = false;
  figures.decode_seconds = 1;
  figures.reload_seconds = 2;
  EXPECT_EQ(why_slow(figures).verdict, SlowVerdict::MemoryBound);
  figures.decode_seconds = 3;
  EXPECT_EQ(why_slow(figures).verdict, SlowVerdict::DecodeBound);
  figures.wait_seconds = 4;
  EXPECT_EQ(why_slow(figures).verdict, SlowVerdict::HostWait);
  figures.dry_seconds = 9.9;  // 0.9 s of it unexplained
  EXPECT_EQ(why_slow(figures).verdict, SlowVerdict::HostWait);
}

TEST(WhySlow, WithoutSteadyStepsNothingIsClaimed) {
  EXPECT_EQ(why_slow({}).verdict, SlowVerdict::Unknown);
  EXPECT_EQ(why_slow({}).line(), "too few steps to say");
}

}  // namespace
}  // namespace millrace
