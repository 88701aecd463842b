// Programs that end well, badly, by a signal, not at all, or do not exist.
#include "bench/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace millrace {
namespace {

namespace fs = std::filesystem;

class ChildProcess : public ::testing::Test {
 protected:
  ~ChildProcess() override { fs::remove_all(folder_); }

  Result<ProcessEnd> run_blocking(const std::vector<std::string>& words) {
    fs::create_directories(folder_);
    return run_process_blocking(ledger_, words, folder_ / "log", stop_, tick_);
  }
  Result<ProcessEnd> shell_blocking(const std::string& line) {
    return run_blocking({"/bin/sh", "-c", line});
  }

  fs::path folder_ =
      fs::temp_directory_path() / ("millrace_child_process_" + std::to_string(::getpid()));
  WaitLedger ledger_;
  std::atomic<bool> stop_ = false;
  std::function<void()> tick_;
};

TEST_F(ChildProcess, ItsExitCodeAndItsOutputAreKept) {
  const ProcessEnd end = shell_blocking("echo out; echo err >&2; exit 3").or_raise();
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_FALSE(end.stopped);
  EXPECT_EQ(last_lines(folder_ / "log", 5), (std::vector<std::string>{"out", "err"}));
}

TEST_F(ChildProcess, TheHostsWaitIsInTheLedger) {
  shell_blocking("sleep 0.05").or_raise();
  ASSERT_EQ(ledger_.records().size(), 1u);
  EXPECT_EQ(ledger_.records()[0].site, "bench.child");
  EXPECT_GE(ledger_.records()[0].blocked_ns, 10'000'000u);
}

TEST_F(ChildProcess, ASignalIs128AndItsNumber) {
  EXPECT_EQ(shell_blocking("kill -9 $$").or_raise().exit_code, 137);
}

TEST_F(ChildProcess, StoppingEndsIt) {
  stop_ = true;
  const ProcessEnd end = shell_blocking("exec sleep 60").or_raise();
  EXPECT_TRUE(end.stopped);
  EXPECT_EQ(end.exit_code, 128 + 15);
  EXPECT_LT(end.seconds, 10);
}

TEST_F(ChildProcess, AMissingProgramIsAUsageError) {
  const auto end = run_blocking({(folder_ / "no-such-program").string()});
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code, ErrorCode::Usage);
  EXPECT_NE(end.error().message.find("no-such-program"), std::string::npos);
}

TEST_F(ChildProcess, ALogThatCannotBeWrittenIsAnOutputError) {
  const auto end =
      run_process_blocking(ledger_, {"/bin/true"}, folder_ / "absent" / "log", stop_, nullptr);
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code, ErrorCode::Output);
}

TEST_F(ChildProcess, LastLinesCountWhatWasRewrittenInPlace) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "text") << "one\n\ntwo\rthree\r\nfour";
  EXPECT_EQ(last_lines(folder_ / "text", 3), (std::vector<std::string>{"two", "three", "four"}));
  EXPECT_TRUE(last_lines(folder_ / "absent", 3).empty());
}

}  // namespace
}  // namespace millrace
