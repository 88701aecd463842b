// The summary of a bench worked out by hand, its order, and its file.
#include "bench/bench_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/report_example.h"

namespace millrace::test {
namespace {

TEST(BenchReport, TheSidesAlternateAndTakeTurnsAtGoingFirst) {
  std::string order;
  for (uint32_t i = 0; i < 8; ++i) order += side_at(i, 2) == 0 ? 'A' : 'B';
  EXPECT_EQ(order, "ABBAABBA");
  EXPECT_EQ(side_at(5, 1), 0u);
}

TEST(BenchReport, RatiosAreOfPairsAndNotOfMedians) {
  const BenchSummary summary = summarise(example_report());
  EXPECT_EQ(summary.pair_ratios, (std::vector<double>{2, 2, 3}));
  EXPECT_DOUBLE_EQ(summary.ratio.median, 2);
  EXPECT_DOUBLE_EQ(summary.ratio.max, 3);
  EXPECT_DOUBLE_EQ(summary.sides[0].metrics[0].median, 11);
  EXPECT_DOUBLE_EQ(summary.sides[0].metrics[0].mad, 1);
  EXPECT_DOUBLE_EQ(summary.sides[1].metrics[0].median, 22);
}

TEST(BenchReport, DriftIsWhatBothSidesShare) {
  BenchReport report = example_report();
  // B is ten times as slow; from run to run everything slows by 1 % of its side's median of 100 %.
  report.runs = {run_of(0, 0, 98), run_of(1, 0, 990), run_of(1, 1, 1000), run_of(0, 1, 101)};
  report.runs[3].ms_per_step = 102;
  // Medians 100 and 995; relative times 98, 99.497, 100.503, 102 %.
  EXPECT_NEAR(summarise(report).drift_percent_per_run, (3 * 4 + 1.0050251) / 10, 1e-6);
  report.runs.resize(1);
  EXPECT_TRUE(std::isnan(summarise(report).drift_percent_per_run));
}

TEST(BenchReport, AnIncompletePairHasNoRatio) {
  BenchReport report = example_report();
  report.runs.pop_back();
  EXPECT_EQ(summarise(report).pair_ratios, (std::vector<double>{2, 2}));
}

TEST(BenchReport, WindowsCarryTheSpreadOverRuns) {
  const BenchSummary summary = summarise(example_report());
  ASSERT_EQ(summary.sides[0].windows.size(), 2u);
  const WindowSummary& last = summary.sides[0].windows[1];
  EXPECT_EQ(last.step_begin, 50u);
  EXPECT_EQ(last.step_end, 100u);
  EXPECT_DOUBLE_EQ(last.ms_per_step.median, 16.5);
  EXPECT_DOUBLE_EQ(last.ms_per_step.min, 15);
  EXPECT_DOUBLE_EQ(last.ms_per_step.max, 18);
  EXPECT_DOUBLE_EQ(last.instances, 5000);
  EXPECT_DOUBLE_EQ(last.device_busy_percent, 95);
}

TEST(BenchReport, ItsJsonReadsBackAsItWas) {
  BenchReport report = example_report();
  report.interrupted = true;
  report.failure = "run 6 of 6 (B) failed\n  bytes \xff";
  const std::string text = to_json_text(report);
  const BenchReport read = bench_report_from_json(text).or_raise();
  EXPECT_EQ(to_json_text(read), text);
  EXPECT_EQ(read.sides[1].flags, report.sides[1].flags);
  ASSERT_EQ(read.runs.size(), 6u);
  EXPECT_EQ(read.runs[1].side, 1u);
  EXPECT_EQ(read.runs[5].windows.size(), 2u);
  EXPECT_DOUBLE_EQ(read.runs[5].ms_per_step, 36);
  EXPECT_TRUE(std::isnan(read.runs[0].psnr)) << "unknown figures stay unknown";
  EXPECT_TRUE(read.interrupted);
}

TEST(BenchReport, WhatIsNoBenchIsRefused) {
  for (const char* text :
       {"", "[]", "{}", "{\"sides\":[],\"runs\":[]}",
        "{\"sides\":[{}],\"runs\":[{\"side\":\"b\"}]}", "{\"sides\":[{}],\"runs\":[3]}"}) {
    const auto read = bench_report_from_json(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::Usage);
  }
}

}  // namespace
}  // namespace millrace::test
