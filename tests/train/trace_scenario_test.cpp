// The trace of a tiny training run: it parses, adds up, and agrees with the ledger.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "device/trace.h"
#include "train/runner_bench.h"
#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json json_of(const std::string& text) {
  json parsed = json::parse(text, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded());
  return parsed;
}

/// Events by the name of their track, in the order in which they began.
using Tracks = std::map<std::string, std::vector<json>>;

Tracks tracks_of(const json& trace) {
  std::map<int, std::string> names;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
  }
  Tracks tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "M") tracks[names.at(event["tid"])].push_back(event);
  }
  for (auto& [name, events] : tracks) {
    std::stable_sort(events.begin(), events.end(), [](const json& a, const json& b) {
      return a["ts"].get<double>() < b["ts"].get<double>();
    });
  }
  return tracks;
}

double end_of(const json& event) { return event["ts"].get<double>() + event.value("dur", 0.0); }

/// One run with refinements, reorderings, replays, evictions, an evaluation and a save.
struct TracedRun {
  TrainSummary summary;
  json trace, report;
  Tracks tracks;
};

const TracedRun& traced_run() {
  static const TracedRun run = [] {
    TrainOptions options = tiny_options(60);
    options.trace = (scratch_folder() / "traces" / "trace.json").string();
    options.image_cache_bytes = 4 * 3 * 64 * 48;
    options.test_capacity = {{1, 30}};
    options.eval_steps = {40};
    TracedRun traced;
    traced.summary = train_or_fail(options);
    traced.trace = json_of(read_text_file(options.trace).or_raise());
    traced.report = json_of(read_text_file(traced.summary.report).or_raise());
    traced.tracks = tracks_of(traced.trace);
    return traced;
  }();
  return run;
}

TEST(TraceOfTraining, HasEveryTrackAndDropsNothing) {
  const TracedRun& run = traced_run();
  for (const char* track :
       {"device", "host waits", "recorded", "accepted", "uploads", "phases", "loader 1"}) {
    EXPECT_TRUE(run.tracks.contains(track)) << track;
  }
  EXPECT_EQ(run.trace["otherData"]["dropped_events"], 0);
}

TEST(TraceOfTraining, SpansOfOneTrackDoNotOverlap) {
  for (const auto& [name, events] : traced_run().tracks) {
    for (size_t i = 1; i < events.size(); ++i) {
      EXPECT_GE(events[i]["ts"].get<double>(), end_of(events[i - 1]) - 1e-3)
          << name << ": " << events[i - 1] << " and " << events[i];
    }
  }
}

TEST(TraceOfTraining, TheDeviceComputedNoLongerThanTheRunTook) {
  double us = 0;
  for (const json& event : traced_run().tracks.at("device")) us += event["dur"].get<double>();
  EXPECT_GT(us, 0);
  EXPECT_LE(us * 1e-6, traced_run().summary.seconds);
}

TEST(TraceOfTraining, EveryStepIsRecordedAndAcceptedInOrder) {
  std::set<int> recorded;
  for (const json& event : traced_run().tracks.at("recorded")) {
    if (event["name"] == "step") recorded.insert(event["args"]["step"].get<int>());
  }
  EXPECT_EQ(recorded.size(), 60u);
  int next = 0, refused = 0;
  for (const json& event : traced_run().tracks.at("accepted")) {
    if (event["name"] == "step") {
      EXPECT_EQ(event["args"]["step"], next++);
    }
    refused += event["name"] == "refused" ? 1 : 0;
  }
  EXPECT_EQ(next, 60);
  EXPECT_EQ(refused, static_cast<int>(traced_run().summary.replays));
}

TEST(TraceOfTraining, WaitsAreThoseOfTheLedger) {
  struct Sum {
    uint64_t count = 0;
    double us = 0;
  };
  std::map<std::string, Sum> traced;
  for (const json& event : traced_run().tracks.at("host waits")) {
    const std::string key = event["name"].get<std::string>() + " " +
                            event["args"]["site"].get<std::string>() + " " +
                            event["args"]["reason"].get<std::string>();
    ++traced[key].count;
    traced[key].us += event["dur"].get<double>();
  }
  const json& rows = traced_run().report["waits"]["by_site"];
  EXPECT_EQ(traced.size(), rows.size());
  for (const json& row : rows) {
    const std::string key = row["site"].get<std::string>() + " " + row["where"].get<std::string>() +
                            " " + row["reason"].get<std::string>();
    EXPECT_EQ(traced[key].count, row["count"].get<uint64_t>()) << key;
    EXPECT_NEAR(traced[key].us * 1e3, row["ns"].get<double>(), 1000) << key;
  }
}

TEST(TraceOfTraining, LoadersShowTheImagesThatTheyDecode) {
  std::set<std::string> names;
  for (const auto& [track, events] : traced_run().tracks) {
    if (!track.starts_with("loader")) continue;
    for (const json& event : events) names.insert(event["name"].get<std::string>());
  }
  EXPECT_EQ(names.size(), tiny_dataset().views.size());
  EXPECT_TRUE(names.contains(tiny_dataset().views.at(0).name)) << tiny_dataset().views.at(0).name;
}

TEST(TraceOfTraining, LoadingEvaluationAndSavingAreShown) {
  std::map<std::string, int> phases;
  for (const json& event : traced_run().tracks.at("phases")) ++phases[event["name"]];
  EXPECT_EQ(phases,
            (std::map<std::string, int>{{"load", 1}, {"score", 4}, {"save", 1}, {"finish", 1}}));
}

TEST(TraceOfTraining, EveryKernelOfTheSteadyStepsIsThere) {
  RunnerBench bench(tiny_options(60));
  ASSERT_TRUE(bench.run_blocking(20).ok());
  TraceRecorder trace;
  const uint64_t before = bench.device.queue().launches;
  bench.device.set_trace(&trace);
  ASSERT_TRUE(bench.run_blocking(60).ok());
  bench.device.set_trace(nullptr);
  const uint64_t launched = bench.device.queue().launches - before;
  std::map<std::string, int> kernels;
  uint64_t n_kernels = 0;
  const Tracks tracks = tracks_of(json_of(trace.to_json()));
  for (const json& event : tracks.at("device")) {
    if (!event["args"].contains("site")) continue;  // copies, fills, snapshots
    ++kernels[event["name"]];
    ++n_kernels;
    EXPECT_TRUE(event["args"]["site"].get<std::string>().starts_with("src/")) << event;
  }
  EXPECT_EQ(n_kernels, launched);
  for (const char* name :
       {"gate_decide", "blend_forward", "photometric_forward", "blend_backward", "commit_step"}) {
    EXPECT_GE(kernels[name], 40) << name;
  }
}

TEST(TraceOfTraining, ATraceThatCannotBeWrittenEndsTheRunBeforeItBegins) {
  TrainOptions options = tiny_options(5);
  options.output = (scratch_folder() / "untraced").string();
  options.trace = scratch_folder().string();  // a folder
  const std::atomic<bool> stop = false;
  const auto ran = train(options, {}, stop);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::Output);
  EXPECT_FALSE(fs::exists(options.output));
}

TEST(TraceOfTraining, ARunThatFailsLeavesItsTraceToo) {
  TrainOptions options = tiny_options(5);
  options.output = (scratch_folder() / "failed").string();
  options.dataset = (scratch_folder() / "no-such-capture").string();
  options.trace = (scratch_folder() / "failed.json").string();
  const std::atomic<bool> stop = false;
  const auto ran = train(options, {}, stop);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::Dataset);
  const Tracks tracks = tracks_of(json_of(read_text_file(options.trace).or_raise()));
  EXPECT_EQ(tracks.at("phases").at(0)["name"], "load");
}

TEST(TraceOfTraining, TracingDoesNotChangeTheModel) {
  TrainOptions options = tiny_options(60);
  options.test_capacity = {{1, 30}};
  EXPECT_EQ(train_or_fail(options).state_sha256, traced_run().summary.state_sha256);
}

}  // namespace
}  // namespace millrace::test
