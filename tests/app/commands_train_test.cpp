// millrace train from outside: files, exit codes, events, precedence of settings, and Ctrl-C.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "app/process.h"
#include "app/tiny_capture_suite.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Train : public TinyCaptureSuite {
 protected:
  Words train_words(const Words& more) { return words_for("train", out(), more); }
  Outcome train(const Words& more) { return run_millrace(train_words(more), folder_ / "scratch"); }
  fs::path out() { return folder_ / "run"; }
  json config() { return json::parse(content_of(out() / "config.json")); }
};

std::vector<json> events_of(const std::string& text) {
  std::vector<json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    events.push_back(json::parse(line, nullptr, false));
    EXPECT_TRUE(events.back().is_object()) << line;
    EXPECT_TRUE(events.back()["event"].is_string()) << line;
    EXPECT_TRUE(events.back()["time_s"].is_number()) << line;
  }
  return events;
}

size_t count(const std::vector<json>& events, const std::string& name) {
  size_t n = 0;
  for (const json& event : events) n += event["event"] == name ? 1 : 0;
  return n;
}

TEST_F(Train, LeavesTheDocumentedFilesAndSaysWhere) {
  const Outcome outcome = train({"--iterations", "30"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Words files = {"point_cloud/iteration_30/point_cloud.ply",
                       "cameras.json",
                       "stats/val_step0030.json",
                       "config.json",
                       "report.json",
                       "contact_sheet.png"};
  for (const std::string& file : files) EXPECT_TRUE(fs::exists(out() / file)) << file;
  EXPECT_FALSE(fs::is_empty(out() / "renders"));
  for (const char* text : {"PSNR ", "Gaussians", "steps/s", "host waits per step", "why slow:"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << outcome.out;
  }
  const std::string last = outcome.out.substr(outcome.out.rfind('\n', outcome.out.size() - 2) + 1);
  EXPECT_TRUE(last.starts_with("why slow: ")) << last;
  for (const std::string& file : {files[0], files[4], files[5]}) {
    EXPECT_NE(outcome.out.find((out() / file).string()), std::string::npos) << outcome.out;
  }
  EXPECT_NE(outcome.err.find("9 views (7 to train on, 2 held out)"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("device: cpu"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("30/30 100 %"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find('\r'), std::string::npos) << "a file is no terminal";

  // The same folder again.
  const Outcome refused = train({"--iterations", "30"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--overwrite"), std::string::npos) << refused.err;
  const Outcome replaced = train({"--iterations", "20", "--overwrite", "-q"});
  EXPECT_EQ(replaced.exit_code, 0);
  EXPECT_EQ(replaced.out + replaced.err, "");
  EXPECT_FALSE(fs::exists(out() / files[0]));

  // The model can be scored and rendered.
  const std::string ply = (out() / "point_cloud/iteration_20/point_cloud.ply").string();
  const Outcome scored =
      run_millrace({"eval", capture_.string(), "--model", ply, "-o", (folder_ / "eval").string(),
                    "--config", (out() / "config.json").string()},
                   folder_ / "scratch");
  EXPECT_EQ(scored.exit_code, 0) << scored.err;
  EXPECT_NE(scored.out.find("2 views"), std::string::npos) << scored.out;
  EXPECT_TRUE(fs::exists(folder_ / "eval/contact_sheet.png"));
  const Outcome rendered =
      run_millrace({"render", ply, "--cameras", (out() / "cameras.json").string(), "-o",
                    (folder_ / "images").string(), "--bg_color", "white"},
                   folder_ / "scratch");
  EXPECT_EQ(rendered.exit_code, 0) << rendered.err;
  EXPECT_NE(rendered.out.find("9 images"), std::string::npos) << rendered.out;
}

TEST_F(Train, EventsTellTheRunAndStdoutHoldsNothingElse) {
  const Outcome outcome = train({"--iterations", "30", "--json-events"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<json> events = events_of(outcome.out);
  for (const char* name : {"loaded", "images", "step", "eval", "saved"}) {
    EXPECT_GE(count(events, name), 1u) << name;
  }
  ASSERT_EQ(count(events, "done"), 1u);
  const json& done = events.back();
  EXPECT_EQ(done["event"], "done");
  EXPECT_EQ(done["steps"], 30);
  EXPECT_EQ(done["interrupted"], false);
  EXPECT_TRUE(fs::exists(done["ply"].get<std::string>()));
  EXPECT_EQ(events[0]["event"], "loaded");
  EXPECT_EQ(events[0]["views"], 9);
  double last = 0;
  for (const json& event : events) {
    EXPECT_GE(event["time_s"].get<double>(), last);
    last = event["time_s"];
    if (event["event"] == "step") {
      EXPECT_LT(event["step"].get<int>(), 30);
      EXPECT_TRUE(event["loss"].is_number());
    }
  }
}

TEST_F(Train, WithoutHeldOutViewsTheScoreIsNull) {
  const Outcome outcome = train({"--iterations", "5", "--test_every", "0", "--json-events"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<json> events = events_of(outcome.out);
  EXPECT_TRUE(events.back()["psnr"].is_null()) << events.back();
}

TEST_F(Train, FlagsWinOverTheConfigurationFileAndAllSpellingsCount) {
  const fs::path file = folder_ / "my.json";
  std::ofstream(file) << "{\"iterations\": 4000, \"seed\": 7, \"max_cap\": 1234, \"sh_degree\": 1,"
                      << " \"eval_steps\": [3]}";
  const Outcome outcome = run_millrace(
      {"train", "--config", file.string(), "--source_path", capture_.string(), "--result_dir",
       out().string(), "--max_steps=6", "--cap_max", "999", "--bg-color", "0", "0", "1", "--eval",
       "--headless", "-r", "auto", "--device=cpu"},
      folder_ / "scratch");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json effective = config();
  EXPECT_EQ(effective["iterations"], 6);
  EXPECT_EQ(effective["max_cap"], 999);
  EXPECT_EQ(effective["seed"], 7);
  EXPECT_EQ(effective["sh_degree"], 1);
  EXPECT_EQ(effective["bg_color"], json::parse("[0.0, 0.0, 1.0]"));
  EXPECT_EQ(effective["dataset"], capture_.string());
  EXPECT_TRUE(fs::exists(out() / "stats/val_step0003.json"));
}

TEST_F(Train, AMissingDatasetEndsWithThree) {
  const Outcome outcome = run_millrace(
      {"train", (folder_ / "nowhere").string(), "-o", out().string()}, folder_ / "scratch");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("nowhere"), std::string::npos) << outcome.err;
}

TEST_F(Train, AnUnwritableOutputEndsWithSeven) {
  // A path below a file: nobody can write there, not even root.
  std::ofstream(folder_ / "file") << "x";
  const Outcome outcome = run_millrace(
      {"train", capture_.string(), "-o", (folder_ / "file/run").string(), "--iterations", "5"},
      folder_ / "scratch");
  EXPECT_EQ(outcome.exit_code, 7) << outcome.err;
}

TEST_F(Train, AFileSizeLimitEndsWithSevenAndLeavesNoPartialFile) {
  // 8 blocks hold the settings, not the model.
  std::string line = "ulimit -f 8; exec '" MILLRACE_BINARY "'";
  for (const std::string& word : train_words({"--iterations", "2", "-q"})) {
    line += " '" + word + "'";
  }
  line += " 2> '" + (folder_ / "err").string() + "'";
  const int status = std::system(line.c_str());
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_NE(content_of(folder_ / "err").find("point_cloud.ply"), std::string::npos);
  for (const auto& entry : fs::recursive_directory_iterator(out())) {
    EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << entry.path();
  }
}

TEST_F(Train, RunsStartedTogetherWithoutAnOutputDoNotShareAFolder) {
  fs::create_directories(folder_ / "cwd");
  const std::string run = "'" MILLRACE_BINARY
                          "' train . --device cpu --iterations 1 -q "
                          "--images '" +
                          (capture_ / "images").string() + "'";
  fs::copy(capture_ / "sparse", folder_ / "cwd/sparse", fs::copy_options::recursive);
  const std::string line = "cd '" + (folder_ / "cwd").string() + "' && { " + run + " & " + run +
                           " & " + run + " & wait; } > /dev/null 2>&1";
  ASSERT_EQ(std::system(line.c_str()), 0);
  size_t n_reports = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "cwd/runs")) {
    n_reports += fs::exists(entry.path() / "report.json") ? 1 : 0;
    EXPECT_EQ(entry.path().filename().string().rfind("cwd-", 0), 0u) << entry.path();
  }
  EXPECT_EQ(n_reports, 3u);
}

TEST_F(Train, AHeldOutPhotographThatCannotBeReadGivesNoScore) {
  const fs::path copy = folder_ / "capture";
  fs::copy(capture_, copy, fs::copy_options::recursive);
  const std::string first = (*fs::directory_iterator(copy / "images")).path().filename().string();
  const fs::path held_out = copy / "images" / first;
  fs::resize_file(held_out, fs::file_size(held_out) / 2);
  const Outcome outcome = run_millrace({"train", copy.string(), "-o", out().string(), "-i", "2",
                                        "--test-images", first, "--json-events"},
                                       folder_ / "scratch");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("PSNR 0.00"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("no held-out view could be read"), std::string::npos) << outcome.err;
  for (const json& event : events_of(outcome.out)) {
    if (event["event"] == "eval") {
      EXPECT_TRUE(event["psnr"].is_null()) << event;
    }
  }
}

#ifndef MILLRACE_SANITIZE  // sanitizers reserve terabytes
TEST_F(Train, WithoutMemoryEndsWithFourAndThreeWaysOut) {
  // The points alone take 1.2 GB.
  const Words words = train_words({"--threads", "1", "--random", "--init-num-pts", "100000000"});
  std::string line = "ulimit -v 1000000; exec '" MILLRACE_BINARY "'";
  for (const std::string& word : words) line += " '" + word + "'";
  line += " 2> '" + (folder_ / "err").string() + "'";
  const int status = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 4);
  const std::string err = content_of(folder_ / "err");
  for (const char* way : {"--max-cap", "--max-width", "--image-cache-bytes"}) {
    EXPECT_NE(err.find(way), std::string::npos) << err;
  }
}
#endif

TEST_F(Train, AnUnknownDeviceEndsWithTwo) {
  const Outcome outcome =
      run_millrace({"train", capture_.string(), "-o", out().string(), "--device", "abacus"},
                   folder_ / "scratch");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("cpu"), std::string::npos) << outcome.err;
}

/// Lets `process` come to its first progress line; false if it ended or two minutes passed.
bool reaches_training(const Process& process) {
  for (int i = 0; i < 12000; ++i) {
    if (process.err().find("steps/s") != std::string::npos) return true;
    if (process.has_ended()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_F(Train, CtrlCSavesAndEndsWith130) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process process(train_words({"--iterations", "1000000", "--overwrite"}), folder_ / "scratch");
    ASSERT_TRUE(reaches_training(process)) << process.err();
    process.send(signal);
    const Outcome outcome = process.finish();
    EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
    size_t n_models = 0;
    for (const auto& entry : fs::recursive_directory_iterator(out())) {
      if (entry.path().filename() != "point_cloud.ply") continue;
      ++n_models;
      EXPECT_NE(outcome.err.find("the model so far is saved in " + entry.path().string()),
                std::string::npos)
          << outcome.err;
    }
    EXPECT_EQ(n_models, 1u);
    EXPECT_EQ(json::parse(content_of(out() / "report.json"))["interrupted"], true);
  }
}

TEST_F(Train, ASecondCtrlCEndsAtOnce) {
  // Each decode takes ten minutes, so only the second signal can end this.
  Process process(train_words({"--iterations", "100000", "--test-decode-delay-ms", "600000"}),
                  folder_ / "scratch");
  const auto says = [&](const char* text) {
    for (int i = 0; i < 6000 && !process.has_ended(); ++i) {
      if (process.err().find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  ASSERT_TRUE(says("device: ")) << process.err();
  process.send(SIGINT);
  ASSERT_TRUE(says("stopping at the next step")) << process.err();
  process.send(SIGINT);
  EXPECT_EQ(process.finish().exit_code, 130);
}

TEST_F(Train, WritesATraceAndSaysWhere) {
  const std::string file = (folder_ / "trace.json").string();
  const Outcome outcome = train({"--iterations", "5", "--trace", file});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(file));
  EXPECT_NE(outcome.out.find("trace: " + file), std::string::npos) << outcome.out;
}

TEST_F(Train, ATraceThatCannotBeWrittenEndsItWithSevenBeforeItBegins) {
  const Outcome outcome = train({"--iterations", "5", "--trace", capture_.string()});
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_NE(outcome.err.find("--trace"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(out()));
}

}  // namespace
}  // namespace millrace
