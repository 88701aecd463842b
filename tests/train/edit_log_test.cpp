// Reading edits, and what holds at a step.
#include "train/edit_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

class EditLogFile : public ::testing::Test {
 protected:
  EditLogFile() : path_(::testing::TempDir() + "millrace_edits.jsonl") {}
  ~EditLogFile() override { std::filesystem::remove(path_); }

  Result<EditLog> read(const std::string& text) {
    std::ofstream(path_) << text;
    return EditLog::read(path_, 200);
  }
  void expect_refused(const std::string& text, const std::string& line, const std::string& what) {
    const Result<EditLog> log = read(text);
    ASSERT_FALSE(log.ok()) << text;
    EXPECT_EQ(log.error().code, ErrorCode::Usage);
    EXPECT_NE(log.error().message.find(path_ + ", line " + line), std::string::npos)
        << log.error().message;
    EXPECT_NE(log.error().message.find(what), std::string::npos) << log.error().message;
  }

  std::string path_;
};

using Color = std::array<float, 3>;

TEST_F(EditLogFile, HoldsFromItsStepOn) {
  const EditLog log = read(
                          "{\"step\": 50, \"bg_color\": \"#ffffff\"}\n\n"
                          "{\"step\": 20, \"bg_color\": [0, 0.5, 1], \"max_cap\": 70}\r\n")
                          .or_raise();
  const Color own = {0.25f, 0.25f, 0.25f};
  EXPECT_EQ(log.bg_color(19, own), own);
  EXPECT_EQ(log.bg_color(20, own), (Color{0, 0.5f, 1}));
  EXPECT_EQ(log.bg_color(49, own), (Color{0, 0.5f, 1}));
  EXPECT_EQ(log.bg_color(50, own), (Color{1, 1, 1}));
  EXPECT_EQ(log.max_cap(19, 9), 9u);
  EXPECT_EQ(log.max_cap(60, 9), 70u);
}

TEST_F(EditLogFile, PausesAtItsStepAlone) {
  const EditLog log = read("{\"step\": 7, \"pause\": 1.5}").or_raise();
  EXPECT_EQ(log.pause_seconds(6), 0);
  EXPECT_EQ(log.pause_seconds(7), 1.5);
  EXPECT_EQ(log.pause_seconds(8), 0);
  expect_refused("{\"step\": 1, \"pause\": -1}", "1", "seconds");
  expect_refused("{\"step\": 1, \"pause\": true}", "1", "seconds");
}

TEST_F(EditLogFile, OfOneStepTheLaterLineWins) {
  const EditLog log =
      read("{\"step\": 5, \"max_cap\": 10}\n{\"step\": 5, \"max_cap\": 20}").or_raise();
  EXPECT_EQ(log.max_cap(5, 1), 20u);
}

TEST_F(EditLogFile, KnowsWhatIsDueOnce) {
  const EditLog log =
      read("{\"step\": 5, \"save\": true, \"eval\": false, \"stop\": true}").or_raise();
  ASSERT_EQ(log.edits().size(), 1u);
  EXPECT_TRUE(log.edits()[0].save);
  EXPECT_FALSE(log.edits()[0].eval);
  EXPECT_TRUE(log.edits()[0].stop);
}

TEST_F(EditLogFile, NamesTheLineAndTheKeyOfWhatItRefuses) {
  const std::string good = "{\"step\": 1, \"save\": true}\n";
  expect_refused(good + "{\"step\": 2", "2", "not a line of JSON");
  expect_refused(good + "[1]", "2", "not an object");
  expect_refused("{\"save\": true}", "1", "\"step\" is missing");
  expect_refused(good + good + "{\"step\": 201}", "3", "from 0 to 200");
  expect_refused("{\"step\": -1}", "1", "\"step\" is -1");
  expect_refused("{\"step\": 1, \"sav\": true}", "1", "did you mean save");
  expect_refused("{\"step\": 1, \"save\": 1}", "1", "not true or false");
  expect_refused("{\"step\": 1, \"max_cap\": 0}", "1", "\"max_cap\" is 0");
  expect_refused("{\"step\": 1, \"bg_color\": \"white-ish\"}", "1", "\"bg_color\"");
}

TEST_F(EditLogFile, ThatIsMissingIsNamed) {
  const Result<EditLog> log = EditLog::read(path_ + ".not", 200);
  ASSERT_FALSE(log.ok());
  EXPECT_NE(log.error().message.find(path_ + ".not"), std::string::npos);
}

}  // namespace
}  // namespace millrace::test
