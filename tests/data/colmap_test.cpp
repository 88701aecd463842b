// COLMAP models: layouts, both encodings, and what a reader must survive.
#include "data/capture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "capture_writer.h"
#include "data/colmap.h"

namespace millrace::test {
namespace {

Result<Dataset> load(const TempFolder& folder) { return load_dataset(folder.path(), {}); }

TEST(Colmap, BinaryAndTextModelsGiveTheSameDataset) {
  TestModel model = small_model(5);
  model.images[2].q = {0.5, 0.25, -0.5, 0.75};
  TempFolder binary, text;
  model.write_binary(binary / "sparse/0");
  model.write_text(text / "sparse/0");
  write_photos(model, binary / "images");
  write_photos(model, text / "images");
  const Dataset a = load(binary).or_raise(), b = load(text).or_raise();
  EXPECT_EQ(a.format, "COLMAP binary (sparse/0)");
  EXPECT_EQ(b.format, "COLMAP text (sparse/0)");
  ASSERT_EQ(a.views.size(), 5u);
  ASSERT_EQ(b.views.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(a.views[i].name, b.views[i].name);
    for (int k = 0; k < 12; ++k) {
      EXPECT_NEAR(a.views[i].camera.world_to_camera[k], b.views[i].camera.world_to_camera[k], 1e-6);
    }
  }
  EXPECT_EQ(a.points.positions, b.points.positions);
  EXPECT_EQ(a.points.colors, (std::vector<uint8_t>{10, 20, 30, 10, 20, 30, 10, 20, 30}));
  EXPECT_EQ(a.points.colors, b.points.colors);
  EXPECT_TRUE(a.warnings.empty());
}

TEST(Colmap, AQuaternionOfAnyLengthTurnsTheWorldByHamiltonsRule) {
  // A quarter turn about z takes x to y.
  const auto pose = pose_from_quaternion({2, 0, 0, 2}, {1, 2, 3});
  ASSERT_TRUE(pose);
  EXPECT_NEAR((*pose)[4], 1, 1e-12);   // row y, column x
  EXPECT_NEAR((*pose)[1], -1, 1e-12);  // row x, column y
  EXPECT_NEAR((*pose)[10], 1, 1e-12);
  EXPECT_EQ((*pose)[7], 2);
  Camera camera;
  camera.world_to_camera = *pose;
  const auto centre = camera_centre(camera);
  EXPECT_NEAR(centre[0], -2, 1e-12);
  EXPECT_NEAR(centre[1], 1, 1e-12);
  EXPECT_NEAR(centre[2], -3, 1e-12);
}

TEST(Colmap, PosesWithoutADirectionOrANumberAreNone) {
  const double nan = std::nan("");
  EXPECT_FALSE(pose_from_quaternion({0, 0, 0, 0}, {0, 0, 0}));
  EXPECT_FALSE(pose_from_quaternion({5e-324, 0, 0, 0}, {0, 0, 0}));
  EXPECT_FALSE(pose_from_quaternion({nan, 0, 0, 1}, {0, 0, 0}));
  EXPECT_FALSE(pose_from_quaternion({1, 0, 0, 0}, {0, std::numeric_limits<double>::infinity(), 0}));
  EXPECT_FALSE(pose_from_quaternion({1, 0, 0, 0}, {0, -1e300, 0}));  // overflows float
  EXPECT_TRUE(pose_from_quaternion({1e200, 0, 0, 1e200}, {0, 0, 0}));
}

TEST(Colmap, EveryUsualLayoutIsFound) {
  for (const char* place : {"sparse/0", "sparse", "colmap/sparse/0", "dense/0/sparse", "."}) {
    const TestModel model = small_model(3);
    TempFolder folder;
    model.write_binary(folder / place);
    write_photos(model, folder / "images");
    const auto dataset = load(folder);
    ASSERT_TRUE(dataset) << place << ": " << dataset.error().message;
    EXPECT_EQ(dataset.value().views.size(), 3u) << place;
  }
}

TEST(Colmap, TheLargestOfSeveralModelsIsTakenAndNamed) {
  TempFolder folder;
  small_model(2).write_binary(folder / "sparse/0");
  small_model(4).write_binary(folder / "sparse/1");
  small_model(9).write_binary(folder / "distorted/sparse/0");
  write_photos(small_model(9), folder / "images");
  const Dataset dataset = load(folder).or_raise();
  EXPECT_EQ(dataset.views.size(), 4u);
  EXPECT_TRUE(any_contains(dataset.notes, "sparse/1"));
}

TEST(Colmap, BinaryWinsOverTextAndTheNoteSaysSo) {
  TempFolder folder;
  small_model(3).write_binary(folder / "sparse/0");
  small_model(2).write_text(folder / "sparse/0");
  write_bytes(folder / "sparse/0/rigs.bin", "not looked at");
  write_bytes(folder / "sparse/0/frames.bin", "not looked at");
  write_photos(small_model(3), folder / "images");
  const Dataset dataset = load(folder).or_raise();
  EXPECT_EQ(dataset.views.size(), 3u);
  EXPECT_TRUE(any_contains(dataset.notes, ".bin files are used"));
}

TEST(Colmap, TextToleratesWindowsSpellingsCommentsAndSpacesInNames) {
  TempFolder folder;
  write_bytes(folder / "sparse/0/cameras.txt",
              "# a comment\r\n3 PINHOLE 32 24 3.0e+001 +30 16 12\r\n\r\n# another\r\n");
  write_bytes(folder / "sparse/0/images.txt",
              "# a comment\r\n1 1 0 0 0 8.6e-002 0 4 3 sub dir/photo one.png\r\n\r\n"
              "2 nan(ind) 0 0 0 0 0 4 3 b.png\r\n1 2 -1\r\n"
              "3 1 0 0 0 -1.#IND 0 4 3 c.png\r\n\r\n"
              "4 1 0 0 0 1 0 4 3 \xC3\xA9t\xC3\xA9.png\r\n1 2 -1 3 4 5 6 7 8 9 10 11");
  write_bytes(folder / "sparse/0/points3D.txt", "");
  write_png(folder / "images/sub dir/photo one.png", gradient_image(32, 24));
  write_png(folder / "images/\xC3\xA9t\xC3\xA9.png", gradient_image(32, 24));
  const Dataset dataset = load(folder).or_raise();
  ASSERT_EQ(dataset.views.size(), 2u);
  EXPECT_EQ(dataset.views[0].name, "sub dir/photo one.png");
  EXPECT_EQ(dataset.views[0].camera.fx, 30);
  EXPECT_DOUBLE_EQ(dataset.views[0].camera.world_to_camera[3], 0.086);
  EXPECT_TRUE(any_contains(dataset.warnings, "b.png, c.png"));
}

TEST(Colmap, LeftOutLinesOf2DPointsAreNoticed) {
  const TestModel model = small_model(4);
  TempFolder folder;
  model.write_text(folder / "sparse/0");
  write_bytes(folder / "sparse/0/images.txt", model.images_txt(""));
  write_photos(model, folder / "images");
  const Dataset dataset = load(folder).or_raise();
  EXPECT_EQ(dataset.views.size(), 4u);
  EXPECT_TRUE(any_contains(dataset.notes, "leaves out"));
}

TEST(Colmap, TextErrorsNameFileLineAndField) {
  const TestModel model = small_model(2);
  TempFolder folder;
  model.write_text(folder / "sparse/0");
  write_bytes(folder / "sparse/0/images.txt", "# c\n1 1 0 zero 0 0 0 4 1 a00.png\n\n");
  const Error error = load(folder).error();
  EXPECT_EQ(error.code, ErrorCode::Dataset);
  EXPECT_NE(error.message.find("images.txt: line 2"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("'zero'"), std::string::npos);
}

TEST(Colmap, AWrongNumberOfParametersIsRefusedAndFullOpencvIsPadded) {
  TestModel model = small_model(1);
  TempFolder folder;
  model.write_text(folder / "sparse/0");
  write_photos(model, folder / "images");
  write_bytes(folder / "sparse/0/cameras.txt", "1 PINHOLE 32 24 30 30 16\n");
  const Error error = load(folder).error();
  EXPECT_NE(error.message.find("takes 4 parameters, found 3"), std::string::npos) << error.message;
  write_bytes(folder / "sparse/0/cameras.txt", "1 FULL_OPENCV 32 24 30 30 16 12 0 0 0 0 0 0\n");
  const Dataset dataset = load(folder).or_raise();
  EXPECT_EQ(dataset.views[0].lens.kind, LensKind::Pinhole);
  EXPECT_EQ(dataset.views[0].camera.width, 32u);
}

TEST(Colmap, UnsupportedModelsAreNamedWithCameraAndFile) {
  TestModel model = small_model(1);
  model.cameras[0].model = 5;
  model.cameras[0].params = {30, 30, 16, 12, 0, 0, 0, 0};
  TempFolder folder;
  model.write_binary(folder / "sparse/0");
  write_photos(model, folder / "images");
  Error error = load(folder).error();
  EXPECT_NE(error.message.find("OPENCV_FISHEYE"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("camera 1"), std::string::npos);
  EXPECT_NE(error.message.find("cameras.bin"), std::string::npos);
  model.cameras[0].model = 99;
  model.write_binary(folder / "sparse/0");
  error = load(folder).error();
  EXPECT_NE(error.message.find("99"), std::string::npos) << error.message;
}

TEST(Colmap, EveryTruncationOfABinaryModelIsAnErrorWithAByte) {
  const TestModel model = small_model(2);
  TempFolder folder;
  write_photos(model, folder / "images");
  for (const char* name : {"cameras.bin", "images.bin", "points3D.bin"}) {
    model.write_binary(folder / "sparse/0");
    const std::string whole = read_bytes(folder / "sparse/0" / name);
    for (size_t n = 0; n < whole.size(); ++n) {
      write_bytes(folder / "sparse/0" / name, whole.substr(0, n));
      const auto dataset = load(folder);
      ASSERT_FALSE(dataset) << name << " cut to " << n;
      EXPECT_NE(dataset.error().message.find("byte"), std::string::npos) << dataset.error().message;
      EXPECT_NE(dataset.error().message.find(name), std::string::npos) << dataset.error().message;
    }
  }
}

TEST(Colmap, CountsThatTheFileCannotHoldAreRefused) {
  const TestModel model = small_model(2);
  TempFolder folder;
  write_photos(model, folder / "images");
  for (const char* name : {"cameras.bin", "images.bin", "points3D.bin"}) {
    model.write_binary(folder / "sparse/0");
    std::string bytes = read_bytes(folder / "sparse/0" / name);
    const uint64_t count = 1ull << 61;
    std::memcpy(bytes.data(), &count, sizeof(count));
    write_bytes(folder / "sparse/0" / name, bytes);
    const auto dataset = load(folder);
    ASSERT_FALSE(dataset);
    EXPECT_NE(dataset.error().message.find("cannot hold"), std::string::npos);
  }
}

TEST(Colmap, FlippedBytesNeverCrashTheReader) {
  TestModel model = small_model(3);
  TempFolder folder;
  write_photos(model, folder / "images");
  uint32_t state = 12345;
  const auto next = [&] { return state = state * 1664525u + 1013904223u; };
  for (const bool text : {false, true}) {
    for (const char* stem : {"cameras", "images", "points3D"}) {
      fs::remove_all(folder / "sparse");
      text ? model.write_text(folder / "sparse/0") : model.write_binary(folder / "sparse/0");
      const fs::path path = folder / "sparse/0" / (std::string(stem) + (text ? ".txt" : ".bin"));
      const std::string whole = read_bytes(path);
      for (int i = 0; i < 150; ++i) {
        std::string bytes = whole;
        for (int k = 0; k < 3; ++k)
          bytes[(next() >> 8) % bytes.size()] = static_cast<char>(next() >> 24);
        write_bytes(path, bytes);
        const auto dataset = load(folder);
        if (!dataset) {
          EXPECT_FALSE(dataset.error().message.empty());
        }
      }
    }
  }
}

TEST(Colmap, DuplicateNamesAndMissingCamerasAreReported) {
  TestModel model = small_model(2);
  model.images.push_back(model.images[0]);
  TempFolder folder;
  model.write_binary(folder / "sparse/0");
  write_photos(model, folder / "images");
  const Dataset dataset = load(folder).or_raise();
  EXPECT_EQ(dataset.views.size(), 2u);
  EXPECT_TRUE(any_contains(dataset.warnings, "a00.png"));
  model.images[1].camera_id = 44;
  model.write_binary(folder / "sparse/0");
  EXPECT_NE(load(folder).error().message.find("camera 44"), std::string::npos);
}

TEST(Colmap, AnEmptyModelIsAnErrorAndNoPointsMeanRandomOnes) {
  TestModel model = small_model(2);
  model.points.clear();
  TempFolder folder;
  model.write_binary(folder / "sparse/0");
  write_photos(model, folder / "images");
  const Dataset dataset = load(folder).or_raise();
  EXPECT_TRUE(dataset.points_are_random);
  EXPECT_EQ(dataset.points.count(), 100000u);
  TestModel().write_binary(folder / "sparse/0");
  EXPECT_NE(load(folder).error().message.find("no image"), std::string::npos);
}

}  // namespace
}  // namespace millrace::test
