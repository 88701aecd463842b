// The program from outside: help, usage errors and the commands that need no training.
#include "app/run.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "app/process.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class RunMain : public ::testing::Test {
 protected:
  Outcome run(const Words& arguments) { return run_millrace(arguments, folder_ / "scratch"); }
  /// Runs what must end with 2 and `text` in its message.
  void expect_usage_error(const Words& arguments, const std::string& text) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << text << "\nis not in\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  std::string path(const std::string& name) { return (folder_ / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(RunMain, WithoutArgumentsGivesShortHelpAndTwo) { expect_usage_error({}, "usage: millrace"); }

TEST_F(RunMain, VersionIsTheProjects) {
  const Outcome outcome = run({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  std::smatch match;
  const std::string cmake = content_of(fs::path(MILLRACE_SOURCE_DIR) / "CMakeLists.txt");
  ASSERT_TRUE(std::regex_search(cmake, match, std::regex("project\\(millrace VERSION ([0-9.]+)")));
  EXPECT_EQ(outcome.out.rfind("millrace " + match[1].str(), 0), 0u) << outcome.out;
}

TEST_F(RunMain, HelpIsOnStdout) {
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  const Outcome outcome = run({"train", "x", "--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("--max-cap"), std::string::npos);
  EXPECT_NE(outcome.out.find("[1000000]"), std::string::npos);
}

TEST_F(RunMain, TheManualNamesEveryFlag) {
  const std::string manual = content_of(fs::path(MILLRACE_SOURCE_DIR) / "docs/cli.md");
  for (const char* command : {"train", "eval", "render", "devices", "make-capture", "score"}) {
    const std::string help = run({command, "--help"}).out;
    const std::regex flag("--[a-z][a-z0-9-]*");
    for (auto it = std::sregex_iterator(help.begin(), help.end(), flag);
         it != std::sregex_iterator(); ++it) {
      const std::regex whole("(^|[^a-z0-9-])" + it->str() + "($|[^a-z0-9-])");
      EXPECT_TRUE(std::regex_search(manual, whole)) << command << " " << it->str();
    }
  }
}

TEST_F(RunMain, UsageErrorsEndWithTwoAndSayWhatToDo) {
  expect_usage_error({"trian"}, "did you mean train?");
  expect_usage_error({"my_photos"}, "millrace train my_photos");
  expect_usage_error({"--seed", "3"}, "stands before a command");
  expect_usage_error({"train"}, "DATASET is missing");
  expect_usage_error({"train", "a", "b"}, "'b' is one argument too many");
  expect_usage_error({"train", "a", "--iteratons", "5"}, "did you mean --iterations?");
  expect_usage_error({"train", "a", "--iterations", "many"},
                     "--iterations: expected a whole number");
  expect_usage_error({"train", "a", "--iterations", "0"}, "--iterations must be");
  expect_usage_error({"train", "a", "--strategy", "none-such"}, "--strategy must be mcmc or mrnf");
  expect_usage_error({"train", "a", "--config", path("none.json")}, "none.json");
  expect_usage_error({"train", "a", "--log-level", "loud"}, "--log-level");
  expect_usage_error({"eval", "a"}, "--model PLY is missing");
  expect_usage_error({"render", "a.ply", "-o", "x"}, "--cameras FILE is missing");
  expect_usage_error({"score", "a"}, "PHOTOS is missing");
  expect_usage_error({"make-capture", "a", "--size", "640"}, "--size: expected WIDTHxHEIGHT");
  expect_usage_error({"make-capture", "a", "--views", "0"},
                     "--views: expected a whole number from 1");
  expect_usage_error({"devices", "now"}, "'now' is one argument too many");
}

TEST_F(RunMain, AConfigurationErrorNamesFileLineAndKey) {
  std::ofstream(path("my.json")) << "{\n  \"max_capp\": 5}\n";
  expect_usage_error({"train", "a", "--config", path("my.json")},
                     "my.json:2:3: \"max_capp\": there is no such setting; did you mean max_cap?");
}

TEST_F(RunMain, QuietStillPrintsErrorsAndEventsCarryThem) {
  const Outcome outcome = run({"train", "a", "--iterations", "0", "-q", "--json_events"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err.rfind("error: --iterations", 0), 0u) << outcome.err;
  const auto event = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(event["event"], "error");
  EXPECT_EQ(event["code"], 2);
  EXPECT_TRUE(event["time_s"].is_number());
}

TEST_F(RunMain, DevicesBeginWithTheirId) {
  const Outcome outcome = run({"devices"});
  EXPECT_EQ(outcome.exit_code, 0);
  std::istringstream lines(outcome.out);
  bool has_cpu = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string id = line.substr(0, line.find(' '));
    EXPECT_TRUE(std::regex_match(id, std::regex("[a-z]+(:[0-9]+)?"))) << line;
    has_cpu = has_cpu || id == "cpu";
  }
  EXPECT_TRUE(has_cpu);
}

TEST_F(RunMain, MakeCaptureWritesOnceAndScoreScoresIt) {
  const Words words = {"make-capture", path("capture"), "--views", "4",        "--size",
                       "40x30",        "--samples",     "1",       "--points", "100"};
  const Outcome made = run(words);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("PSNR of the mean colour: "), std::string::npos) << made.out;
  EXPECT_TRUE(fs::exists(folder_ / "capture/sparse/0/cameras.bin"));
  expect_usage_error(words, "--overwrite");
  Words again = words;
  again.insert(again.end(), {"--overwrite", "--text", "--json-events"});
  const Outcome remade = run(again);
  ASSERT_EQ(remade.exit_code, 0) << remade.err;
  EXPECT_TRUE(fs::exists(folder_ / "capture/sparse/0/cameras.txt"));
  EXPECT_NE(remade.out.find("\"mean_color_psnr\""), std::string::npos);

  const std::string images = path("capture/images");
  const Outcome scored = run({"score", images, images, "--json"});
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const auto result = nlohmann::json::parse(scored.out);
  EXPECT_EQ(result["images"], 4);
  EXPECT_EQ(result["mean"]["psnr"], 100.0);
  EXPECT_NE(run({"score", images, images}).out.find("mean of 4 images"), std::string::npos);
  EXPECT_EQ(run({"score", images, path("nothing")}).exit_code, 3);
}

}  // namespace
}  // namespace millrace
