// train() from end to end: its files, its progress, and what it does when stopped or misused.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "io/cameras_json.h"
#include "io/ply.h"
#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

namespace fs = std::filesystem;

nlohmann::json json_of(const fs::path& path) {
  const auto json = nlohmann::json::parse(read_text_file(path).or_raise(), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << path;
  return json;
}

TEST(Train, LeavesTheDocumentedFiles) {
  TrainOptions options = tiny_options(60);
  options.save_steps = {20};
  options.eval_steps = {30};
  const TrainSummary summary = train_or_fail(options);
  for (const char* file :
       {"report.json", "config.json", "cameras.json", "contact_sheet.png",
        "point_cloud/iteration_20/point_cloud.ply", "point_cloud/iteration_60/point_cloud.ply",
        "stats/val_step0030.json", "stats/val_step0060.json", "renders/IMG_0001.png",
        "renders/IMG_0009.png"}) {
    EXPECT_TRUE(fs::exists(summary.output / file)) << file;
  }
  EXPECT_EQ(summary.steps, 60u);
  EXPECT_EQ(summary.ply, summary.output / "point_cloud/iteration_60/point_cloud.ply");
  EXPECT_EQ(read_gaussian_ply(summary.ply).or_raise().count(), summary.gaussians);
  EXPECT_EQ(read_cameras_json(summary.output / "cameras.json").or_raise().size(), 12u);
  const auto report = json_of(summary.report);
  EXPECT_EQ(report["steps"], 60);
  EXPECT_EQ(report["state_sha256"], summary.state_sha256);
  EXPECT_EQ(report["gaussians"], summary.gaussians);
  EXPECT_EQ(report["interrupted"], false);
  EXPECT_EQ(report["skipped_rows"], 0);
  EXPECT_NEAR(report["psnr"].get<double>(), summary.psnr, 1e-9);
  // config.json trains the same run again.
  TrainOptions again = options_from_json(read_text_file(summary.output / "config.json").or_raise(),
                                         "config.json", TrainOptions())
                           .or_raise();
  again.dataset = options.dataset;
  again.output.clear();
  EXPECT_EQ(train_or_fail(again).state_sha256, summary.state_sha256);
}

TEST(Train, WaitsForPacingAloneInSteadySteps) {
  const TrainSummary summary = train_or_fail(tiny_options(120));
  EXPECT_EQ(summary.steady_waits_per_step, 0);
  const auto report = json_of(summary.report);
  EXPECT_EQ(report["waits"]["steady_per_step"], 0.0);
  for (const auto& row : report["waits"]["by_site"]) {
    if (row["reason"] == "Pacing") {
      EXPECT_EQ(row["site"], "trainer.pacing");
    }
  }
}

TEST(Train, HeldOutViewsGetBetterWithTheSteps) {
  TrainOptions options = tiny_options(400);
  options.eval_steps = {1, 100};
  std::vector<EvalResult> results;
  TrainObserver observer;
  observer.evaluated = [&](const EvalResult& result) { results.push_back(result); };
  train_or_fail(options, observer);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_GT(results[1].psnr, results[0].psnr + 1);
  EXPECT_GT(results[2].psnr, results[1].psnr + 0.3);
  EXPECT_GT(results[2].ssim, results[0].ssim);
  EXPECT_EQ(results[2].n_views, 2u);
}

TEST(Train, ReportsEveryStepInOrder) {
  std::vector<uint32_t> steps;
  uint32_t n_loaded = 0;
  TrainObserver observer;
  observer.loaded = [&](const Dataset& dataset, const DeviceInfo& info) {
    ++n_loaded;
    EXPECT_EQ(dataset.views.size(), 12u);
    EXPECT_EQ(info.threads, 2);
  };
  observer.step = [&](const StepProgress& progress) {
    steps.push_back(progress.step);
    EXPECT_TRUE(std::isfinite(progress.loss));
    EXPECT_GT(progress.gaussians, 0u);
    EXPECT_GT(progress.instances, 0u);
    EXPECT_GT(progress.train_psnr, 3);
  };
  train_or_fail(tiny_options(40), observer);
  ASSERT_EQ(steps.size(), 40u);
  for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(steps[i], i);
  EXPECT_EQ(n_loaded, 1u);
}

TEST(Train, StoppingSavesWhatThereIs) {
  TrainOptions options = tiny_options(100000);
  options.output = (scratch_folder() / "stopped").string();
  options.overwrite = true;
  std::atomic<bool> stop = false;
  TrainObserver observer;
  observer.step = [&](const StepProgress& progress) {
    if (progress.step == 30) stop = true;
  };
  const TrainSummary summary = train(options, observer, stop).or_raise();
  EXPECT_TRUE(summary.interrupted);
  EXPECT_GE(summary.steps, 31u);
  EXPECT_LE(summary.steps, 36u);
  EXPECT_EQ(read_gaussian_ply(summary.ply).or_raise().count(), summary.gaussians);
  EXPECT_EQ(json_of(summary.report)["interrupted"], true);
}

TEST(Train, WithoutHeldOutViewsTheScoresAreUnknown) {
  TrainOptions options = tiny_options(3);
  options.test_every = 0;
  const TrainSummary summary = train_or_fail(options);
  EXPECT_TRUE(std::isnan(summary.psnr));
  EXPECT_TRUE(json_of(summary.report)["psnr"].is_null());
}

TEST(Train, RefusesAnEarlierRunUnlessToldToReplaceIt) {
  TrainOptions options = tiny_options(2);
  options.output = (scratch_folder() / "twice").string();
  fs::remove_all(options.output);
  train_or_fail(options);
  const std::atomic<bool> stop = false;
  const auto again = train(options, {}, stop);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::Usage);
  options.overwrite = true;
  train_or_fail(options);
}

// tiny_capture() in a folder of its own, to be spoilt.
fs::path copy_of_capture(const char* name) {
  const fs::path copy = scratch_folder() / name;
  fs::copy(tiny_capture(), copy, fs::copy_options::recursive);
  return copy;
}

TEST(Train, AnUnusableCaptureLeavesTheRunItWouldReplace) {
  const TrainSummary summary = train_or_fail(tiny_options(10));
  const fs::path copy = copy_of_capture("half a photograph");
  const fs::path photograph = copy / "images" / "IMG_0003.jpg";
  fs::resize_file(photograph, fs::file_size(photograph) / 2);
  TrainOptions options = tiny_options(10);
  options.dataset = copy.string();
  options.output = summary.output.string();
  options.overwrite = true;
  const std::atomic<bool> stop = false;
  const auto result = train(options, {}, stop);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::Dataset);
  EXPECT_NE(result.error().message.find("IMG_0003"), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().message.find("remove or replace"), std::string::npos);
  EXPECT_TRUE(fs::exists(summary.ply));
  EXPECT_TRUE(fs::exists(summary.report));
}

TEST(Train, APhotographThatVanishesWhileTrainingDoesNotLoseTheModel) {
  const fs::path copy = copy_of_capture("vanishing");
  TrainOptions options = tiny_options(400);
  options.dataset = copy.string();
  options.image_cache_bytes = 1;  // every step reads its photograph again
  options.output = (scratch_folder() / "vanished").string();
  TrainObserver observer;
  observer.step = [&](const StepProgress& progress) {
    if (progress.step == 20) fs::remove_all(copy / "images");
  };
  const std::atomic<bool> stop = false;
  const auto result = train(options, observer, stop);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::Dataset);
  size_t n_models = 0;
  for (const auto& entry : fs::recursive_directory_iterator(options.output)) {
    if (entry.path().filename() == "point_cloud.ply") ++n_models;
  }
  EXPECT_EQ(n_models, 1u);
}

TEST(Train, StoppingWhilePhotographsLoadEndsTheLoading) {
  TrainOptions options = tiny_options(50);
  options.output = (scratch_folder() / "stopped early").string();
  std::atomic<bool> stop = false;
  uint32_t n_loaded = 0;
  TrainObserver observer;
  observer.images_loading = [&](uint32_t done, uint32_t) {
    n_loaded = done;
    stop = true;
  };
  const auto result = train(options, observer, stop);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(result.value().interrupted);
  EXPECT_EQ(n_loaded, 1u);
  EXPECT_TRUE(fs::exists(result.value().ply));
}

TEST(Train, AMissingDatasetIsADatasetError) {
  TrainOptions options = tiny_options(2);
  options.dataset = (scratch_folder() / "nowhere").string();
  options.output = (scratch_folder() / "nowhere_out").string();
  const std::atomic<bool> stop = false;
  const auto result = train(options, {}, stop);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::Dataset);
}

TEST(Train, TakesTheSmallestRuns) {
  for (const uint64_t cap : {1ull, 2ull, 33ull}) {
    TrainOptions options = tiny_options(30);
    options.max_cap = cap;
    options.random = true;
    options.init_num_pts = cap;
    EXPECT_LE(train_or_fail(options).gaussians, cap);
  }
}

TEST(EvaluateModel, ScoresASavedModelAsTrainingDid) {
  TrainOptions options = tiny_options(30);
  const TrainSummary summary = train_or_fail(options);
  EvalOptions eval;
  eval.dataset = options.dataset;
  eval.model = summary.ply.string();
  eval.device = "cpu";
  eval.data = options;
  const EvalResult result = evaluate_model(eval, {}).or_raise();
  EXPECT_EQ(result.gaussians, summary.gaussians);
  EXPECT_EQ(result.n_views, 2u);
  EXPECT_NEAR(result.psnr, summary.psnr, 0.01);
  EXPECT_NEAR(result.ssim, summary.ssim, 0.001);
}

}  // namespace
}  // namespace millrace::test
