// The same seed gives the same bits: run to run and for any number of threads.
#include <gtest/gtest.h>

#include <cstdlib>

#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

constexpr uint32_t kSteps = 60;  // refinement, two SH degrees and Morton order

const TrainSummary& first_run() {
  static const TrainSummary summary = train_or_fail(tiny_options(kSteps));
  return summary;
}

TEST(Determinism, TwoRunsEndInTheSameState) {
  const TrainSummary again = train_or_fail(tiny_options(kSteps));
  ASSERT_EQ(first_run().state_sha256.size(), 64u);
  EXPECT_EQ(again.state_sha256, first_run().state_sha256);
  EXPECT_EQ(again.psnr, first_run().psnr);
}

TEST(Determinism, OneTwoThreeAndEightThreadsEndInTheSameState) {
  for (const int threads : {1, 2, 3, 8}) {
    TrainOptions options = tiny_options(kSteps);
    options.threads = threads;
    EXPECT_EQ(train_or_fail(options).state_sha256, first_run().state_sha256) << threads;
  }
}

TEST(Determinism, AnotherSeedEndsInAnotherState) {
  TrainOptions options = tiny_options(kSteps);
  options.seed = 43;
  EXPECT_NE(train_or_fail(options).state_sha256, first_run().state_sha256);
}

TEST(Determinism, EvaluatingAndSavingOnTheWayLeavesTheStateAlone) {
  TrainOptions options = tiny_options(kSteps);
  options.eval_steps = {1, 20, 21};
  options.save_steps = {20, 30};
  EXPECT_EQ(train_or_fail(options).state_sha256, first_run().state_sha256);
}

TEST(Determinism, PhotographsThatComeAndGoLeaveTheStateAlone) {
  TrainOptions options = tiny_options(kSteps);
  options.image_cache_bytes = 40000;  // two targets of 9216 bytes beside two decoded ones
  options.test_decode_delay_ms = 0.5;
  EXPECT_EQ(train_or_fail(options).state_sha256, first_run().state_sha256);
}

TEST(Determinism, TheInstructionSetIsChosenOncePerProcess) {
  first_run();
  const char* before = std::getenv("MILLRACE_ISA");
  const std::string saved = before ? before : "";
  setenv("MILLRACE_ISA", "v2", 1);
  const std::string hash = train_or_fail(tiny_options(kSteps)).state_sha256;
  if (before) {
    setenv("MILLRACE_ISA", saved.c_str(), 1);
  } else {
    unsetenv("MILLRACE_ISA");
  }
  EXPECT_EQ(hash, first_run().state_sha256);
}

}  // namespace
}  // namespace millrace::test
