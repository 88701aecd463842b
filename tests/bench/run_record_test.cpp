// Reading report.json, also of programs that write less into it.
#include "bench/run_record.h"

#include <gtest/gtest.h>

#include <cmath>

namespace millrace {
namespace {

TEST(RunRecord, TakesTheFiguresOfAReport) {
  const RunRecord run =
      record_of_report(R"({"steps_per_second": 50, "ms_per_step": {"median": 19, "p95": 30},
        "commit": "abc", "device": {"id": "cpu", "name": "chip"}, "psnr": 21.5, "loss": 0.1,
        "gaussians": 7, "instances": {"mean": 70, "max": 90}, "seconds": 4,
        "peak_bytes": {"host": 10, "device": 20},
        "waits": {"steady_per_step": 0.5, "pacing_per_step": 0.9},
        "windows": [
          {"step_begin": 0, "step_end": 20, "ms_per_step": 90, "device_busy_fraction": 0.1},
          {"step_begin": 20, "step_end": 40, "ms_per_step": 10, "device_busy_fraction": 0.6},
          {"step_begin": 40, "step_end": 60, "ms_per_step": 30, "device_busy_fraction": 1.0}]})",
                       "report.json")
          .or_raise();
  EXPECT_DOUBLE_EQ(run.ms_per_step, 20);
  EXPECT_DOUBLE_EQ(run.ms_median, 19);
  EXPECT_DOUBLE_EQ(run.device_busy_percent, 90) << "weighted by time, steady windows alone";
  EXPECT_NEAR(run.unaccounted_ms, 2, 1e-9);
  EXPECT_DOUBLE_EQ(run.waits_per_step, 0.5);
  EXPECT_DOUBLE_EQ(run.pacing_per_step, 0.9);
  EXPECT_DOUBLE_EQ(run.device_peak_bytes, 20);
  EXPECT_DOUBLE_EQ(run.psnr, 21.5);
  EXPECT_EQ(run.device, "cpu: chip");
  ASSERT_EQ(run.windows.size(), 3u);
  EXPECT_TRUE(std::isnan(run.windows[0].gaussians));
}

TEST(RunRecord, WhatAnOlderProgramDoesNotReportIsUnknown) {
  const RunRecord run =
      record_of_report(R"({"steps_per_second": 50, "psnr": null})", "report.json").or_raise();
  EXPECT_DOUBLE_EQ(run.ms_per_step, 20);
  for (const double value : {run.psnr, run.loss, run.device_busy_percent, run.unaccounted_ms}) {
    EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_TRUE(run.windows.empty());
}

TEST(RunRecord, ARunWithoutSteadyStepsSaysWhatToDo) {
  const auto run = record_of_report(R"({"steps_per_second": 0})", "x/report.json");
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::Usage);
  EXPECT_NE(run.error().message.find("--iterations"), std::string::npos) << run.error().message;
  EXPECT_EQ(record_of_report("no JSON", "report.json").error().code, ErrorCode::Internal);
}

}  // namespace
}  // namespace millrace
