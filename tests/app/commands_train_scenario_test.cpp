// Scenario: the memory of the whole program, against its plan and its budgets.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "app/process.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Memory : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    capture_ = fs::temp_directory_path() / ("millrace_memory_" + std::to_string(::getpid()));
    const Outcome made = run_millrace({"make-capture", capture_.string(), "--views", "24", "--size",
                                       "320x240", "--samples", "1", "--points", "500"},
                                      capture_ / "scratch");
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static void TearDownTestSuite() { fs::remove_all(capture_); }

  Outcome train(const std::string& budget) {
    return run_millrace(
        {"train", capture_.string(), "-o", out().string(), "--overwrite", "--device", "cpu",
         "--threads", "2", "--random", "--init-num-pts", "60000", "--max-cap", "60000",
         "--iterations", "12", "--ram-budget", budget, "--json-events"},
        folder_ / "scratch");
  }
  fs::path out() { return folder_ / "run"; }
  json report() { return json::parse(content_of(out() / "report.json")); }

  static inline fs::path capture_;
  TemporaryFolder folder_;
};

#ifndef MILLRACE_SANITIZE  // sanitizers hold memory of their own

TEST_F(Memory, OfTheProcessIsNearItsPlanAndNeverMore) {
  const Outcome outcome = train("0");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json plan = report()["memory_plan"];
  const auto peak = report()["peak_bytes"]["host"].get<uint64_t>();
  EXPECT_LE(peak, plan["total"].get<uint64_t>());
  EXPECT_GE(peak, plan["total"].get<uint64_t>() / 10 * 6);
  EXPECT_TRUE(plan["gave_up"].empty());
}

TEST_F(Memory, StaysWithinItsBudgetAndSaysWhatThatCost) {
  const Outcome outcome = train("92M");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json plan = report()["memory_plan"];
  EXPECT_LE(plan["total"].get<uint64_t>(), 92u << 20);
  EXPECT_LE(report()["peak_bytes"]["host"].get<uint64_t>(), 92u << 20);
  EXPECT_FALSE(plan["gave_up"].empty());
  EXPECT_NE(outcome.err.find("memory plan: at most"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("given up to fit: "), std::string::npos) << outcome.err;
  const size_t planned = outcome.out.find("\"event\":\"memory_plan\"");
  const size_t first_step = outcome.out.find("\"event\":\"step\"");
  EXPECT_LT(planned, first_step) << outcome.out;
}

#endif

TEST_F(Memory, ThatIsTooLittleIsToldBeforeTheFirstStepWithExitCodeFour) {
  const Outcome outcome = train("16M");
  EXPECT_EQ(outcome.exit_code, 4);
  for (const char* part : {"needs at least", "--ram-budget allows 16.0 MiB", "-r 2"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(outcome.out.find("\"event\":\"step\""), std::string::npos);
}

}  // namespace
}  // namespace millrace
