// Steady steps on a small model of a synthetic capture.
#include "bench/steady.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/ply.h"
#include "synth/make_capture.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

GaussianCloud three_gaussians() {
  GaussianCloud cloud;
  cloud.sh_degree = 1;
  for (int i = 0; i < 3; ++i) {
    const auto x = static_cast<float>(i);
    cloud.means.insert(cloud.means.end(), {x, 10 + x, 20 + x});
    cloud.log_scales.insert(cloud.log_scales.end(), {-3, -3, -3});
    cloud.rotations.insert(cloud.rotations.end(), {1, 0, 0, x});
    cloud.opacities.push_back(x);
    cloud.sh0.insert(cloud.sh0.end(), {x, x, x});
    cloud.sh_rest.insert(cloud.sh_rest.end(), 9, x);
  }
  return cloud;
}

TEST(Steady, RowsAreRepeatedInPlaceSideBySide) {
  const GaussianCloud cloud = repeated(three_gaussians(), 7);
  EXPECT_EQ(cloud.opacities, (std::vector<float>{0, 0, 0, 1, 1, 2, 2}));
  ASSERT_EQ(cloud.means.size(), 21u);
  EXPECT_EQ(cloud.means[3 * 6 + 1], 12);
  EXPECT_EQ(cloud.rotations[4 * 4 + 3], 1);
  EXPECT_EQ(cloud.sh_rest.size(), 7u * 9);
  EXPECT_EQ(cloud.sh_rest.back(), 2);
  EXPECT_EQ(repeated(three_gaussians(), 2).opacities, (std::vector<float>{0, 1}));
  EXPECT_EQ(repeated(three_gaussians(), 3).means, three_gaussians().means);
  EXPECT_EQ(repeated(GaussianCloud(), 3).count(), 0u);
}

TEST(Steady, AStagesBytesGrowWithItsCount) {
  SteadyReport report;
  report.n_gaussians = 1000;
  report.visible = 500;
  report.instances = 4000;
  report.processed_share = 0.5;
  const std::vector<StageCount> stages = stage_counts(report, 3, 10000);
  double count_of_blend = 0;
  for (const StageCount& stage : stages) {
    EXPECT_GT(stage.bytes, 0) << stage.stage;
    if (std::string(stage.stage) == "blend") count_of_blend = stage.count;
  }
  EXPECT_DOUBLE_EQ(count_of_blend, 2000);
  report.instances = 8000;
  const std::vector<StageCount> more = stage_counts(report, 3, 10000);
  EXPECT_GT(more[3].bytes, stages[3].bytes);
  EXPECT_DOUBLE_EQ(more[0].bytes, stages[0].bytes) << "projection does not depend on instances";
}

class SteadyRuns : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("millrace_steady_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    CaptureOptions capture;
    capture.n_views = 9;
    capture.width = 48;
    capture.height = 36;
    capture.n_points = 200;
    capture.samples = 1;
    make_capture(folder_ / "capture", capture, {}).or_raise();
    write_gaussian_ply(folder_ / "model.ply", three_gaussians()).or_raise();
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static SteadyOptions options() {
    SteadyOptions options;
    options.train.dataset = (folder_ / "capture").string();
    options.train.device = "cpu";
    options.model = (folder_ / "model.ply").string();
    options.n_gaussians = 100;
    options.n_steps = 30;
    options.n_warm_up = 5;
    return options;
  }

  static inline fs::path folder_;
};

TEST_F(SteadyRuns, CountTheStepsAndNeverWait) {
  const std::atomic<bool> stop = false;
  const SteadyReport report = run_steady_blocking(options(), {}, stop).or_raise();
  EXPECT_EQ(report.n_steps, 30u);
  EXPECT_EQ(report.n_in_file, 3u);
  EXPECT_EQ(report.n_gaussians, 100u);
  EXPECT_EQ(report.n_views, 7u);
  EXPECT_GT(report.ms.n, 15u);
  EXPECT_GE(report.ms.median, 0);
  EXPECT_GT(report.ms_mean, 0);
  EXPECT_LE(report.visible, 100);
  EXPECT_EQ(report.waits_per_step, 0);
  EXPECT_GT(report.launches_per_step, 5);
  EXPECT_LE(report.launches_per_step, 40);
  EXPECT_EQ(report.n_sampled, 7u);
  EXPECT_GE(report.processed_share, 0);
  EXPECT_LE(report.processed_share, 1);
  EXPECT_GT(report.floor_ms, 0);
  EXPECT_FALSE(report.interrupted);
  // Timing events: every launch of a step, and what each stage took.
  double launches = 0, staged_ms = 0, kernel_ms = 0;
  for (const KernelTime& kernel : report.kernels) {
    launches += kernel.launches;
    if (kernel.stage >= 0) kernel_ms += kernel.ms;
  }
  for (const StageCount& stage : report.stages) {
    EXPECT_GT(stage.ms, 0) << stage.stage;
    staged_ms += stage.ms;
  }
  EXPECT_GE(launches, report.launches_per_step);
  EXPECT_NEAR(staged_ms, kernel_ms, 1e-9);
  const std::string text = steady_table(report);
  for (const char* part : {"ms per step", "visible", "instances", "processed share", "floor",
                           "blend_backward", "GB/s", "not available"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(to_json(report)["gaussians"], 100);
}

TEST_F(SteadyRuns, AMissingModelIsTold) {
  const std::atomic<bool> stop = false;
  SteadyOptions missing = options();
  missing.model = (folder_ / "absent.ply").string();
  const auto report = run_steady_blocking(missing, {}, stop);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("absent.ply"), std::string::npos);
}

TEST_F(SteadyRuns, StopWhenAsked) {
  const std::atomic<bool> stop = true;
  const SteadyReport report = run_steady_blocking(options(), {}, stop).or_raise();
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.n_steps, 0u);
  EXPECT_EQ(to_json(report).dump().find("nan"), std::string::npos);
}

}  // namespace
}  // namespace millrace
