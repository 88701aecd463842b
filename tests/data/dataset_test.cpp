// load_dataset: image look-up, sizes, hold-out, and options.
#include "data/dataset.h"

#include <gtest/gtest.h>

#include <limits>

#include "capture_writer.h"

namespace millrace::test {
namespace {

/// A COLMAP capture of `n` views in a temporary folder.
struct Capture {
  explicit Capture(int n) : model(small_model(n)) {
    model.write_binary(folder / "sparse/0");
    write_photos(model, folder / "images");
  }
  Result<Dataset> load(const DatasetOptions& options = {}) const {
    return load_dataset(folder.path(), options);
  }
  TempFolder folder;
  TestModel model;
};

std::vector<std::string> held_out(const Dataset& dataset) {
  std::vector<std::string> names;
  for (const View& view : dataset.views) {
    if (view.held_out) names.push_back(view.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Dataset, EveryEighthNameIsHeldOutByDefault) {
  const Capture capture(18);
  EXPECT_EQ(held_out(capture.load().or_raise()), (Names{"a00.png", "a08.png", "a16.png"}));
  DatasetOptions options;
  options.test_fold = 3;
  EXPECT_EQ(held_out(capture.load(options).or_raise()), (Names{"a03.png", "a11.png"}));
  options.test_fold = 0;
  options.test_every = 0;
  EXPECT_TRUE(held_out(capture.load(options).or_raise()).empty());
}

TEST(Dataset, ImpossibleFoldsAreUsageErrors) {
  const Capture capture(4);
  DatasetOptions options;
  options.test_fold = 8;
  EXPECT_EQ(capture.load(options).error().code, ErrorCode::Usage);
  options.test_fold = 0;
  options.test_every = 1;
  EXPECT_EQ(capture.load(options).error().code, ErrorCode::Usage);
}

TEST(Dataset, ASingleViewIsTrainedOn) {
  const Capture capture(1);
  const Dataset dataset = capture.load().or_raise();
  EXPECT_FALSE(dataset.views[0].held_out);
  EXPECT_TRUE(any_contains(dataset.notes, "too few views"));
}

TEST(Dataset, NamedTestImagesWinOverListsWhichWinOverTestEvery) {
  const Capture capture(9);
  write_bytes(capture.folder / "test.txt", "# held out\r\na03.png\r\na05\n");
  Dataset dataset = capture.load().or_raise();
  EXPECT_EQ(held_out(dataset), (Names{"a03.png", "a05.png"}));
  EXPECT_TRUE(any_contains(dataset.notes, "test.txt"));
  DatasetOptions options;
  options.test_images = {"a01", "a02.png"};
  dataset = capture.load(options).or_raise();
  EXPECT_EQ(held_out(dataset), (Names{"a01.png", "a02.png"}));
}

TEST(Dataset, AnUnknownTestImageIsAUsageErrorThatListsCloseNames) {
  const Capture capture(9);
  DatasetOptions options;
  options.test_images = {"a0l.png"};
  const Error error = capture.load(options).error();
  EXPECT_EQ(error.code, ErrorCode::Usage);
  EXPECT_NE(error.message.find("a01.png"), std::string::npos) << error.message;
}

TEST(Dataset, ViewsInNeitherListAreLeftOut) {
  const Capture capture(4);
  write_bytes(capture.folder / "train.txt", "a00.png\na01.png\nunknown.png\n");
  EXPECT_EQ(held_out(capture.load().or_raise()), (Names{"a02.png", "a03.png"}));
  write_bytes(capture.folder / "test.txt", "a02.png\n");
  const Dataset dataset = capture.load().or_raise();
  ASSERT_EQ(dataset.views.size(), 3u);
  EXPECT_EQ(held_out(dataset), (Names{"a02.png"}));
  EXPECT_EQ(dataset.views[2].index, 2u);
  EXPECT_TRUE(any_contains(dataset.warnings, "unknown.png"));
}

TEST(Dataset, MissingEmptyAndForeignFilesAreSkippedWithCountAndNames) {
  const Capture capture(12);
  for (int i = 0; i < 7; ++i)
    fs::remove(capture.folder / ("images/a0" + std::to_string(i) + ".png"));
  write_bytes(capture.folder / "images/a07.png", "");
  write_bytes(capture.folder / "images/a08.png", "hello, this is text");
  write_bytes(capture.folder / "images/.DS_Store", "x");
  write_bytes(capture.folder / "images/._a00.png", "x");
  const Dataset dataset = capture.load().or_raise();
  ASSERT_EQ(dataset.views.size(), 3u);
  EXPECT_EQ(dataset.views[0].name, "a09.png");
  EXPECT_EQ(dataset.views[0].index, 0u);
  EXPECT_TRUE(any_contains(dataset.warnings, "7 of 12"));
  EXPECT_TRUE(any_contains(dataset.warnings, "a04.png and 2 more"));
  EXPECT_TRUE(any_contains(dataset.warnings, "2 of 12 images cannot be read"));
  fs::remove_all(capture.folder / "images");
  EXPECT_EQ(capture.load().error().code, ErrorCode::Dataset);
}

TEST(Dataset, ImagesAreFoundByCaseAndByOtherEndingButNeverByPosition) {
  const Capture capture(3);
  fs::rename(capture.folder / "images/a00.png", capture.folder / "images/A00.PNG");
  fs::remove(capture.folder / "images/a01.png");
  write_jpeg(capture.folder / "images/a01.JPEG", gradient_image(32, 24));
  fs::rename(capture.folder / "images/a02.png", capture.folder / "images/b02.png");
  const Dataset dataset = capture.load().or_raise();
  ASSERT_EQ(dataset.views.size(), 2u);
  EXPECT_EQ(dataset.views[0].image_path.filename(), "A00.PNG");
  EXPECT_EQ(dataset.views[1].image_path.filename(), "a01.JPEG");
}

TEST(Dataset, IntrinsicsFollowTheTrueSizeOfEachFileOnBothAxes) {
  const Capture capture(2);
  write_png(capture.folder / "images/a00.png", gradient_image(64, 36));
  const Dataset dataset = capture.load().or_raise();
  const Camera& camera = dataset.views[0].camera;
  EXPECT_EQ(camera.width, 64u);
  EXPECT_EQ(camera.height, 36u);
  EXPECT_DOUBLE_EQ(camera.fx, 60);
  EXPECT_DOUBLE_EQ(camera.fy, 45);
  EXPECT_DOUBLE_EQ(camera.cx, 32);
  EXPECT_DOUBLE_EQ(camera.cy, 18);
  EXPECT_DOUBLE_EQ(dataset.views[1].camera.fx, 30);
  EXPECT_TRUE(any_contains(dataset.warnings, "aspect ratio"));
}

TEST(Dataset, ResizingUsesTheSmallerCopyWhereThereIsOne) {
  const Capture capture(2);
  write_png(capture.folder / "images_2/a00.png", gradient_image(16, 12));
  DatasetOptions options;
  options.resize_factor = 2;
  const Dataset dataset = capture.load(options).or_raise();
  for (const View& view : dataset.views) {
    EXPECT_EQ(view.camera.width, 16u);
    EXPECT_EQ(view.camera.height, 12u);
    EXPECT_DOUBLE_EQ(view.camera.fx, 15);
    EXPECT_EQ(load_view_image(view, {0, 0, 0}).or_raise().width, 16u);
  }
  EXPECT_EQ(dataset.views[0].file_width, 16u);
  EXPECT_EQ(dataset.views[1].file_width, 32u);
}

TEST(Dataset, TheLongestSideIsLimitedAndZeroMeansNoLimit) {
  const Capture capture(1);
  DatasetOptions options;
  options.max_width = 10;
  options.test_every = 0;
  const Dataset dataset = capture.load(options).or_raise();
  EXPECT_EQ(dataset.views[0].camera.width, 10u);
  EXPECT_EQ(dataset.views[0].camera.height, 8u);
  options.max_width = 0;
  EXPECT_EQ(capture.load(options).or_raise().views[0].camera.width, 32u);
}

TEST(Dataset, TheImageFolderMayBeNamedByNameOrPath) {
  const Capture capture(2);
  fs::rename(capture.folder / "images", capture.folder / "photos");
  TempFolder elsewhere;
  write_photos(capture.model, elsewhere.path());
  DatasetOptions options;
  options.images = "photos";
  EXPECT_EQ(capture.load(options).or_raise().views.size(), 2u);
  options.images = elsewhere.path().string();
  EXPECT_EQ(capture.load(options).or_raise().views[0].image_path, elsewhere / "a00.png");
  options.images = "nowhere";
  EXPECT_EQ(capture.load(options).error().code, ErrorCode::Usage);
}

TEST(Dataset, AFolderWithoutACaptureSaysWhatWasLookedFor) {
  TempFolder folder;
  const Error error = load_dataset(folder.path(), {}).error();
  EXPECT_EQ(error.code, ErrorCode::Dataset);
  EXPECT_NE(error.message.find("sparse/0"), std::string::npos);
  EXPECT_EQ(load_dataset(folder / "nothing", {}).error().code, ErrorCode::Dataset);
}

TEST(Dataset, ATrailingSlashDoesNotMoveTheSearchForImagesUpwards) {
  TempFolder folder;
  const TestModel model = small_model(2);
  model.write_binary(folder / "capture/sparse/0");
  write_photos(model, folder / "images");  // another capture's, one folder up
  EXPECT_FALSE(load_dataset(folder.path() / "capture/", {}));
  write_photos(model, folder / "capture/input");
  const Dataset dataset = load_dataset(folder.path() / "capture/", {}).or_raise();
  EXPECT_EQ(dataset.views[0].image_path, folder / "capture/input/a00.png");
}

TEST(Dataset, AFarOriginIsWarnedOf) {
  Capture capture(3);
  for (TestImage& image : capture.model.images) image.t[1] = 4e5;
  capture.model.write_binary(capture.folder / "sparse/0");
  EXPECT_TRUE(any_contains(capture.load().or_raise().warnings, "origin"));
}

TEST(Dataset, PointsWithoutAPositionAreDropped) {
  Capture capture(2);
  capture.model.points.push_back({std::numeric_limits<double>::quiet_NaN(), 0, 0});
  capture.model.points.push_back({5, 6, 7});
  capture.model.write_binary(capture.folder / "sparse/0");
  const Dataset dataset = capture.load().or_raise();
  EXPECT_EQ(dataset.points.count(), 4u);
  EXPECT_EQ(dataset.points.positions[9], 5);
  EXPECT_TRUE(any_contains(dataset.warnings, "1 points"));
}

TEST(Dataset, PointsSoFarThatTrainingOverflowsAreDropped) {
  Capture capture(2);
  capture.model.points.push_back({0, 1e37, 0});
  capture.model.write_binary(capture.folder / "sparse/0");
  const Dataset dataset = capture.load().or_raise();
  EXPECT_EQ(dataset.points.count(), 3u);
  EXPECT_TRUE(any_contains(dataset.warnings, "1 points"));
}

}  // namespace
}  // namespace millrace::test
