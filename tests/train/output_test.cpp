// The output folder: earlier runs are kept unless asked otherwise, and the report has the
// documented keys.
#include "train/output.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

namespace fs = std::filesystem;

// A path below the scratch folder that does not exist yet.
fs::path fresh(const std::string& name) {
  const fs::path path = scratch_folder() / "output_test" / name;
  fs::remove_all(path);
  return path;
}

nlohmann::json json_of(const fs::path& path) {
  const auto json = nlohmann::json::parse(read_text_file(path).or_raise(), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << path;
  return json;
}

void put(const fs::path& path) { write_file_atomically(path, std::string_view("x")).or_raise(); }

TEST(OutputFolder, IsMadeWithItsParentsAndLeftEmpty) {
  const fs::path path = fresh("made") / "a" / "b";
  ASSERT_TRUE(open_output_folder(path.string(), "dataset", false).ok());
  EXPECT_TRUE(fs::is_empty(path));
}

TEST(OutputFolder, RefusesAnEarlierRunAndSaysWhatToDo) {
  for (const char* mark : {"report.json", "point_cloud/iteration_7/point_cloud.ply"}) {
    const fs::path path = fresh("earlier");
    put(path / mark);
    const auto opened = open_output_folder(path.string(), "dataset", false);
    ASSERT_FALSE(opened.ok()) << mark;
    EXPECT_EQ(opened.error().code, ErrorCode::Usage);
    EXPECT_NE(opened.error().message.find("--overwrite"), std::string::npos);
    EXPECT_TRUE(fs::exists(path / mark)) << "nothing may be touched";
  }
}

TEST(OutputFolder, OverwritingRemovesTheEarlierRunAndNothingElse) {
  const fs::path path = fresh("overwritten");
  const char* const of_the_run[] = {"report.json", "contact_sheet.png",
                                    "point_cloud/iteration_7/point_cloud.ply", "renders/a.png",
                                    "stats/val_step0007.json"};
  for (const char* file : of_the_run) put(path / file);
  put(path / "notes.txt");
  OutputFolder folder = open_output_folder(path.string(), "dataset", true).or_raise();
  for (const char* file : of_the_run) EXPECT_TRUE(fs::exists(path / file)) << file;
  remove_earlier_run(folder);
  for (const char* file : of_the_run) EXPECT_FALSE(fs::exists(path / file)) << file;
  EXPECT_TRUE(fs::exists(path / "notes.txt"));
}

TEST(OutputFolder, TakesAFolderThatHoldsOtherThings) {
  const fs::path path = fresh("others");
  put(path / "notes.txt");
  EXPECT_TRUE(open_output_folder(path.string(), "dataset", false).ok());
}

TEST(OutputFolder, AFileInItsPlaceIsAnOutputError) {
  const fs::path path = fresh("file");
  put(path);
  const auto opened = open_output_folder(path.string(), "dataset", false);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::Output);
}

TEST(OutputFolder, NamesFilesAsDocumented) {
  const OutputFolder folder = {"run"};
  EXPECT_EQ(folder.ply(7000), fs::path("run/point_cloud/iteration_7000/point_cloud.ply"));
  EXPECT_EQ(folder.stats(60), fs::path("run/stats/val_step0060.json"));
  EXPECT_EQ(folder.stats(30000), fs::path("run/stats/val_step30000.json"));
  EXPECT_EQ(folder.render("left/IMG_1.jpg"), fs::path("run/renders/left/IMG_1.png"));
}

// Keys of CONTRACTS.md; "a/b" is b inside a.
constexpr const char* kReportKeys[] = {"schema",
                                       "commit",
                                       "device",
                                       "steps",
                                       "steps_per_second",
                                       "seconds",
                                       "ms_per_step/median",
                                       "ms_per_step/p95",
                                       "ms_per_step/last_1000_median",
                                       "device_dry_fraction",
                                       "mean_queued_steps",
                                       "why_slow",
                                       "psnr",
                                       "ssim",
                                       "psnr_cc",
                                       "psnr_gain",
                                       "gaussians",
                                       "instances/mean",
                                       "instances/max",
                                       "replays",
                                       "state_sha256",
                                       "peak_bytes/host",
                                       "peak_bytes/device",
                                       "peak_bytes/by_kind",
                                       "waits/steady_per_step",
                                       "waits/pacing_per_step",
                                       "waits/by_site"};

TEST(Report, HasTheDocumentedKeys) {
  const OutputFolder folder = open_output_folder(fresh("report").string(), "d", false).or_raise();
  TrainSummary summary;
  summary.state_sha256 = "abc";
  RunReport run;
  run.has_psnr = true;
  run.waits = {{"trainer.pacing", "runner.cpp:1", WaitReason::Pacing, 3, 1000, 10}};
  run.memory.by_label = {{"model", 5, 7}};
  ASSERT_TRUE(write_report(folder, summary, run).ok());
  const auto json = json_of(folder.report());
  for (const std::string key : kReportKeys) {
    EXPECT_TRUE(json.contains(nlohmann::json::json_pointer("/" + key))) << key;
  }
  const auto& row = json["waits"]["by_site"][0];
  EXPECT_EQ(row["site"], "trainer.pacing");
  EXPECT_EQ(row["reason"], "Pacing");
  EXPECT_EQ(row["count"], 3);
  EXPECT_EQ(row["ns"], 1000);
  EXPECT_EQ(json["peak_bytes"]["by_kind"]["model"], 7);
}

TEST(Report, ScoresAreNullIfNothingWasHeldOut) {
  const OutputFolder folder = open_output_folder(fresh("null").string(), "d", false).or_raise();
  TrainSummary summary;
  summary.psnr = summary.ssim = std::nan("");
  ASSERT_TRUE(write_report(folder, summary, {}).ok());
  const auto json = json_of(folder.report());
  for (const char* key : {"psnr", "ssim", "psnr_cc", "psnr_gain"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
}

TEST(Stats, HaveTheNamesThatOtherToolsRead) {
  const OutputFolder folder = open_output_folder(fresh("stats").string(), "d", false).or_raise();
  EvalResult result;
  result.step = 60;
  result.psnr = 20.5;
  result.ssim = 0.75;
  result.gaussians = 123;
  result.n_views = 4;
  result.seconds = 2;
  ASSERT_TRUE(write_stats(folder, result).ok());
  const auto json = json_of(folder.stats(60));
  EXPECT_EQ(json["psnr"], 20.5);
  EXPECT_EQ(json["ssim"], 0.75);
  EXPECT_EQ(json["num_GS"], 123);
  EXPECT_EQ(json["time"], 0.5) << "seconds per view";
}

}  // namespace
}  // namespace millrace::test
