// One tiny capture for all tests of a suite that runs the program, and a folder for each test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "app/process.h"
#include "io/temporary_folder.h"

namespace millrace {

using Words = std::vector<std::string>;

class TinyCaptureSuite : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string name = "millrace_app_capture_" + std::to_string(::getpid());
    capture_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::remove_all(capture_);
    const Outcome made = run_millrace({"make-capture", capture_.string(), "--views", "9", "--size",
                                       "48x36", "--samples", "1", "--points", "200"},
                                      capture_ / "scratch");
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(capture_); }

  /// `command` on the capture, writing to `output`, on the cpu device, and `more`.
  static Words words_for(const char* command, const std::filesystem::path& output,
                         const Words& more) {
    Words words = {command, capture_.string(), "-o", output.string(), "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static inline std::filesystem::path capture_;
  TemporaryFolder folder_;
};

}  // namespace millrace
