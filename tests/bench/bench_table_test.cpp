// What the table on the terminal says.
#include <gtest/gtest.h>

#include "bench/bench_report.h"
#include "bench/report_example.h"

namespace millrace::test {
namespace {

TEST(BenchTable, HasMediansSpreadRatiosDriftAndWindows) {
  const std::string text = bench_table(example_report());
  for (const char* part : {"A  (the common flags alone)",
                           "B  --threads 1",
                           "commit abc1234",
                           "6 of 6 runs",
                           "ms per step",
                           "11.000",
                           "10.000 .. 12.000",
                           "22.000",
                           "20.000 .. 36.000",
                           "B/A of each pair: median 2.0000 (2.0000 .. 3.0000",
                           "drift: +",
                           "device busy %",
                           "unaccounted ms",
                           "waits per step",
                           "pacing per step",
                           "peak device MiB",
                           "loss",
                           "PSNR",
                           "50 .. 100",
                           "16.500"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(BenchTable, OneSideHasNoRatios) {
  BenchReport report = example_report();
  report.sides.resize(1);
  std::erase_if(report.runs, [](const RunRecord& run) { return run.side == 1; });
  const std::string text = bench_table(report);
  EXPECT_EQ(text.find("B/A"), std::string::npos) << text;
  EXPECT_NE(text.find("3 of 3 runs"), std::string::npos) << text;
}

}  // namespace
}  // namespace millrace::test
