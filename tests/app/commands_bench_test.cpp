// millrace bench from outside: files, order, bad input, runs that fail, and Ctrl-C.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/process.h"
#include "app/tiny_capture_suite.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class BenchCommand : public TinyCaptureSuite {
 protected:
  Words words(const Words& more) { return words_for("bench", out(), more); }
  Outcome bench(const Words& more) { return run_millrace(words(more), folder_ / "scratch"); }
  void expect_usage(const Words& more, const std::string& part) {
    const Outcome outcome = bench(more);
    EXPECT_EQ(outcome.exit_code, 2) << part << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(out() / "bench.json")) << part;
  }
  fs::path out() { return folder_ / "bench"; }
  json figures() { return json::parse(content_of(out() / "bench.json")); }
};

TEST_F(BenchCommand, ComparesTwoConfigurationsAndLeavesTableFiguresAndPlot) {
  const Outcome outcome = bench({"-i", "60", "--a", "", "--b", "--sh_degree 0 --bg-color '1 1 1'",
                                 "--pairs", "1", "--warm-up", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* text : {"ms per step", "B/A of each pair", "device busy %", "54 .. 60"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << outcome.out;
  }
  EXPECT_NE(outcome.err.find("warm-up 1 of 1 (A)"), std::string::npos) << outcome.err;
  const json report = figures();
  ASSERT_EQ(report["runs"].size(), 2u);
  EXPECT_EQ(report["runs"][0]["side"], "a");
  EXPECT_EQ(report["runs"][1]["side"], "b");
  EXPECT_GT(report["runs"][0]["ms_per_step"].get<double>(), 0);
  EXPECT_TRUE(report["runs"][0]["loss"].is_number());
  EXPECT_TRUE(report["runs"][0]["device_busy_percent"].is_number());
  EXPECT_EQ(report["runs"][0]["windows"].size(), 10u);
  EXPECT_EQ(report["summary"]["pair_ratios_b_over_a"].size(), 1u);
  EXPECT_NE(report["runs"][0]["state_sha256"], report["runs"][1]["state_sha256"]);
  EXPECT_NE(content_of(out() / "bench.svg").find("</svg>"), std::string::npos);
  const json settings = json::parse(content_of(out() / "runs/02-b/config.json"));
  EXPECT_EQ(settings["sh_degree"], 0);
  EXPECT_EQ(settings["iterations"], 60);
  EXPECT_EQ(settings["bg_color"], json::parse("[1.0, 1.0, 1.0]"));
  EXPECT_FALSE(fs::exists(out() / "runs/02-b/point_cloud")) << "models are not kept";

  const Outcome again = bench({"-i", "60", "--pairs", "1"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.err.find("--overwrite"), std::string::npos) << again.err;
}

TEST_F(BenchCommand, RunsOneConfigurationAlone) {
  const Outcome outcome =
      bench({"-i", "40", "--a", "--threads 1", "--pairs", "2", "--warm-up", "0", "--keep-runs"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("B/A"), std::string::npos) << outcome.out;
  const json report = figures();
  EXPECT_EQ(report["sides"].size(), 1u);
  ASSERT_EQ(report["runs"].size(), 2u);
  EXPECT_EQ(report["runs"][0]["state_sha256"], report["runs"][1]["state_sha256"]);
  EXPECT_TRUE(fs::exists(out() / "runs/01-a/point_cloud/iteration_40/point_cloud.ply"));
}

TEST_F(BenchCommand, AConfigurationFileIsForTheRunsAndItsOutputFolderIsLeftAlone) {
  const fs::path file = folder_ / "my.json", elsewhere = folder_ / "elsewhere";
  std::ofstream(file) << json{{"iterations", 30}, {"output", elsewhere.string()}};
  const Outcome outcome = bench({"--config", file.string(), "--pairs", "1", "--warm-up", "0"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(elsewhere));
  EXPECT_EQ(figures()["runs"].size(), 1u);
  EXPECT_EQ(json::parse(content_of(out() / "runs/01-a/config.json"))["iterations"], 30);
}

TEST_F(BenchCommand, BadInputIsToldBeforeAnythingRuns) {
  expect_usage({"--pairs", "0"}, "--pairs");
  expect_usage({"--warm-up", "some"}, "--warm-up");
  expect_usage({"--a", "--images 'x"}, "not closed");
  expect_usage({"--b", "--thraeds 1"}, "did you mean --threads");
  expect_usage({"--b", "elsewhere"}, "'elsewhere'");
  expect_usage({"--b", "-o elsewhere"}, "bench chooses each run's folder");
  expect_usage({"--binary-b", (folder_ / "no-such-program").string()}, "no-such-program");
  expect_usage({"--binary-b", capture_.string()}, "not a program");
  expect_usage({"--steady", "100"}, "--init");
  expect_usage({"--init", "model.ply"}, "--steady");
  expect_usage({"--steady", "100", "--init", "x.ply", "--b", "--threads 1"}, "--b");
  const Outcome outcome = run_millrace({"bench"}, folder_ / "scratch");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("DATASET is missing"), std::string::npos) << outcome.err;
}

TEST_F(BenchCommand, ARunThatFailsShowsItsLastLinesAndKeepsWhatWasMeasured) {
  const Outcome outcome =
      bench({"-i", "40", "--b", "--device nothing:7", "--pairs", "2", "--warm-up", "0"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("run 2 of 4 (B) failed with exit code 2"), std::string::npos);
  EXPECT_NE(outcome.err.find("nothing:7"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("1 of 4 runs"), std::string::npos) << outcome.out;
  const json report = figures();
  EXPECT_EQ(report["runs"].size(), 1u);
  EXPECT_NE(report["failure"].get<std::string>().find("exit code 2"), std::string::npos);
}

TEST_F(BenchCommand, AProgramThatIsNotMillraceIsTold) {
  const fs::path script = folder_ / "other";
  std::ofstream(script) << "#!/bin/sh\necho something else\nexit 0\n";
  fs::permissions(script, fs::perms::owner_all);
  const Outcome outcome =
      bench({"-i", "40", "--binary-b", script.string(), "--pairs", "1", "--warm-up", "0"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("report.json"), std::string::npos) << outcome.err;
}

TEST_F(BenchCommand, AnInterruptEndsTheRunAndKeepsTheOnesBefore) {
  // B would train for minutes.
  Process process(words({"-i", "40", "--b", "-i 10000000", "--pairs", "1", "--warm-up", "0"}),
                  folder_ / "scratch");
  const auto begin = std::chrono::steady_clock::now();
  while (!fs::exists(out() / "runs/02-b.log") && !process.has_ended() &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(30)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("interrupted after 1 of 2 runs"), std::string::npos) << outcome.err;
  const json report = figures();
  EXPECT_EQ(report["interrupted"], true);
  EXPECT_FALSE(fs::exists(out() / "runs/02-b/point_cloud"));
  EXPECT_EQ(report["runs"].size(), 1u);
}

TEST_F(BenchCommand, TimesSteadyStepsOfAModel) {
  const Outcome trained =
      run_millrace({"train", capture_.string(), "-o", (folder_ / "run").string(), "-i", "20",
                    "--device", "cpu", "-q"},
                   folder_ / "scratch");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome outcome =
      run_millrace({"bench", "--steady", "1000", "--init",
                    (folder_ / "run/point_cloud/iteration_20/point_cloud.ply").string(), "--data",
                    capture_.string(), "-i", "20", "-o", out().string(), "--device", "cpu"},
                   folder_ / "scratch");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* text : {"ms per step (median", "1000 Gaussians", "visible", "instances",
                           "processed share", "project backward, Adam", "floor", "blended"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << outcome.out;
  }
  EXPECT_EQ(figures()["gaussians"], 1000);
}

}  // namespace
}  // namespace millrace
