// transforms.json in its dialects.
#include <gtest/gtest.h>

#include <cmath>

#include "capture_writer.h"
#include "data/capture.h"

namespace millrace::test {
namespace {

const std::string kIdentityAt4 = "[[1,0,0,0],[0,1,0,0],[0,0,1,4],[0,0,0,1]]";

std::string frame(const std::string& path, const std::string& extra = "",
                  const std::string& matrix = kIdentityAt4) {
  return "{\"file_path\":\"" + path + "\",\"transform_matrix\":" + matrix + extra + "}";
}

Result<Dataset> load(const fs::path& path) {
  DatasetOptions options;
  options.init_num_points = 100;
  return load_dataset(path, options);
}

TEST(Transforms, OpenGlAxesBecomeColmapAxes) {
  // A camera at z = 4 that looks down -z at the origin: in COLMAP's axes y and z are turned round.
  TempFolder folder;
  write_bytes(folder / "transforms.json", "{\"fl_x\":30,\"w\":32,\"h\":24,\"frames\":[" +
                                              frame("images/a.png") + "," + frame("images/b.png") +
                                              "]}");
  write_png(folder / "images/a.png", gradient_image(32, 24));
  write_png(folder / "images/b.png", gradient_image(32, 24));
  const Dataset dataset = load(folder.path()).or_raise();
  const std::array<double, 12> expected = {1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 4};
  EXPECT_EQ(dataset.views[0].camera.world_to_camera, expected);
  EXPECT_EQ(camera_centre(dataset.views[0].camera), (std::array<double, 3>{0, 0, 4}));
  EXPECT_EQ(dataset.views[0].camera.fy, 30);
  EXPECT_EQ(dataset.views[0].camera.cx, 16);
}

TEST(Transforms, BlenderFilesHoldOutTheTestFileAndIgnoreVal) {
  TempFolder folder;
  for (const std::string part : {"train", "test", "val"}) {
    std::string frames;
    for (int i = 0; i < 9; ++i) {
      const std::string name = "./" + part + "/r_" + std::to_string(i);
      frames += (i ? "," : "") + frame(name);
      write_png(folder / (name + ".png"), gradient_image(20, 20, 4));
    }
    write_bytes(folder / ("transforms_" + part + ".json"),
                "{\"camera_angle_x\":0.8,\"frames\":[" + frames + "]}");
  }
  const Dataset dataset = load(folder.path()).or_raise();
  ASSERT_EQ(dataset.views.size(), 18u);
  for (const View& view : dataset.views) {
    EXPECT_EQ(view.held_out, view.name.starts_with("test/")) << view.name;
    EXPECT_NEAR(view.camera.fx, 10 / std::tan(0.4), 1e-9);
    EXPECT_EQ(view.camera.cx, 10);
  }
  EXPECT_TRUE(any_contains(dataset.notes, "transforms_val.json is not used"));
  EXPECT_TRUE(dataset.points_are_random);
}

TEST(Transforms, FramesMayHaveTheirOwnIntrinsics) {
  TempFolder folder;
  write_bytes(folder / "transforms.json",
              "{\"fl_x\":30,\"w\":32,\"h\":24,\"frames\":[" + frame("a.png") + "," +
                  frame("b.png", ",\"fl_x\":50,\"fl_y\":40,\"cx\":1,\"cy\":2,\"w\":64,\"h\":48") +
                  "]}");
  write_png(folder / "a.png", gradient_image(32, 24));
  write_png(folder / "b.png", gradient_image(64, 48));
  const Dataset dataset = load(folder.path()).or_raise();
  EXPECT_EQ(dataset.views[0].camera.fx, 30);
  EXPECT_EQ(dataset.views[1].camera.fx, 50);
  EXPECT_EQ(dataset.views[1].camera.fy, 40);
  EXPECT_EQ(dataset.views[1].camera.cy, 2);
}

TEST(Transforms, DistortionIsUndistortedAndFisheyeRefused) {
  TempFolder folder;
  const std::string rest =
      "\"fl_x\":30,\"w\":32,\"h\":24,\"frames\":[" + frame("a.png") + "," + frame("b.png") + "]}";
  write_png(folder / "a.png", gradient_image(32, 24));
  write_png(folder / "b.png", gradient_image(32, 24));
  write_bytes(folder / "transforms.json", "{\"camera_model\":\"OPENCV\",\"k1\":0.05," + rest);
  const Dataset dataset = load(folder.path()).or_raise();
  EXPECT_EQ(dataset.views[0].camera.width, 31u);
  EXPECT_EQ(dataset.views[0].lens.k1, 0.05);
  write_bytes(folder / "transforms.json",
              "{\"camera_model\":\"OPENCV_FISHEYE\",\"k1\":0.05," + rest);
  EXPECT_NE(load(folder.path()).error().message.find("OPENCV_FISHEYE"), std::string::npos);
  write_bytes(folder / "transforms.json", "{\"k3\":0.05," + rest);
  EXPECT_NE(load(folder.path()).error().message.find("k3"), std::string::npos);
}

TEST(Transforms, NumbersThatOverflowTrainingAreNoPoseAndNoLens) {
  TempFolder folder;
  for (const char* name : {"a.png", "b.png"}) write_png(folder / name, gradient_image(32, 24));
  const std::string frames = "\"frames\":[" + frame("a.png") + "," +
                             frame("b.png", "", "[[1,0,0,1e300],[0,1,0,0],[0,0,1,4]]") + "]}";
  write_bytes(folder / "transforms.json", "{\"fl_x\":30," + frames);
  const Dataset dataset = load(folder.path()).or_raise();
  EXPECT_EQ(dataset.views.size(), 1u);
  EXPECT_TRUE(any_contains(dataset.warnings, "b.png"));
  write_bytes(folder / "transforms.json", "{\"fl_x\":30,\"cx\":1e300," + frames);
  const Result<Dataset> bad_lens = load(folder.path());
  ASSERT_FALSE(bad_lens.ok());
  EXPECT_NE(bad_lens.error().message.find("a.png"), std::string::npos) << bad_lens.error().message;
}

TEST(Transforms, UnusableFramesAreSkippedAndNamed) {
  TempFolder folder;
  write_bytes(folder / "transforms.json",
              "{\"fl_x\":30,\"frames\":[" + frame("a.png") + "," + frame("b.png") + "," +
                  frame("c.png", "", "[[NaN,0,0,0],[0,1,0,0],[0,0,1,4]]") + "," +
                  frame("d.png", "", "[[0,0,0,0],[0,1,0,0],[0,0,1,4]]") + "," +
                  frame("e.png", "", "[[1,0],[2]]") + "," + frame("gone.png") + "," +
                  frame("a.png") + "]}");
  for (const char* name : {"a.png", "b.png", "c.png", "d.png", "e.png"}) {
    write_png(folder / name, gradient_image(32, 24));
  }
  const Dataset dataset = load(folder.path()).or_raise();
  EXPECT_EQ(dataset.views.size(), 2u);
  EXPECT_TRUE(any_contains(dataset.warnings, "c.png, d.png, e.png"));
  EXPECT_TRUE(any_contains(dataset.warnings, "gone.png"));
  EXPECT_TRUE(any_contains(dataset.warnings, "second time"));
}

TEST(Transforms, PointsComeFromTheNamedOrTheUsualPly) {
  TempFolder folder;
  const std::string frames =
      "\"fl_x\":30,\"frames\":[" + frame("a.png") + "," + frame("b.png") + "]}";
  write_png(folder / "a.png", gradient_image(32, 24));
  write_png(folder / "b.png", gradient_image(32, 24));
  write_bytes(folder / "transforms.json", "{\"ply_file_path\":\"cloud/pc.ply\"," + frames);
  write_bytes(
      folder / "cloud/pc.ply",
      "ply\r\nformat ascii 1.0\r\nelement vertex 2\r\nproperty double x\r\nproperty float y\r\n"
      "property float z\r\nproperty uchar red\r\nproperty uchar green\r\nproperty uchar blue\r\n"
      "end_header\r\n1 2 3 4 5 6\r\n7 8 9 10 11 12\r\n");
  Dataset dataset = load(folder.path()).or_raise();
  EXPECT_EQ(dataset.points.positions, (std::vector<float>{1, 2, 3, 7, 8, 9}));
  EXPECT_EQ(dataset.points.colors, (std::vector<uint8_t>{4, 5, 6, 10, 11, 12}));
  write_bytes(folder / "transforms.json", "{" + frames);
  std::string ply =
      "ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty uchar pad\nproperty float "
      "x\n"
      "property float y\nproperty float z\nend_header\n";
  put<uint8_t>(ply, 9), put(ply, 1.5f), put(ply, 2.5f), put(ply, 3.5f);
  write_bytes(folder / "points3D.ply", ply);
  dataset = load(folder.path()).or_raise();
  EXPECT_EQ(dataset.points.positions, (std::vector<float>{1.5f, 2.5f, 3.5f}));
  write_bytes(folder / "points3D.ply", ply.substr(0, ply.size() - 1));
  EXPECT_NE(load(folder.path()).error().message.find("byte"), std::string::npos);
}

TEST(Transforms, ErrorsNameFileAndPlace) {
  TempFolder folder;
  const auto message = [&](const std::string& text) {
    write_bytes(folder / "transforms.json", text);
    const auto dataset = load(folder.path());
    return dataset ? std::string() : dataset.error().message;
  };
  EXPECT_NE(message("{\n\"frames\": [,]}").find("transforms.json: line 2"), std::string::npos);
  EXPECT_NE(message("[]").find("not an object"), std::string::npos);
  EXPECT_NE(message("{}").find("\"frames\""), std::string::npos);
  EXPECT_NE(message("{\"frames\":[{}]}").find("frame 0"), std::string::npos);
  EXPECT_NE(message("{\"frames\":[" + frame("a.png") + "]}").find("focal"), std::string::npos);
  EXPECT_NE(message("{\"fl_x\":1e999,\"frames\":[" + frame("a.png") + "]}"), "");
  EXPECT_NE(message("{\"fl_x\":-5,\"frames\":[" + frame("a.png") + "]}"), "");
  EXPECT_NE(message("{\"fl_x\":5,\"w\":1e9,\"h\":1,\"frames\":[" + frame("a.png") + "]}"), "");
  EXPECT_NE(message(std::string(100000, '[')), "");
  EXPECT_NE(message(""), "");
}

TEST(Transforms, AFileOfAnotherNameIsFoundByItsContentOrGivenDirectly) {
  TempFolder folder;
  write_png(folder / "a.png", gradient_image(32, 24));
  write_png(folder / "b.png", gradient_image(32, 24));
  write_bytes(folder / "aaa.json", "{\"nothing\":1}");
  write_bytes(folder / "transform_train.json",
              "{\"fl_x\":30,\"frames\":[" + frame("a.png") + "," + frame("b.png") + "]}");
  EXPECT_EQ(load(folder.path()).or_raise().views.size(), 2u);
  EXPECT_EQ(load(folder / "transform_train.json").or_raise().views.size(), 2u);
}

}  // namespace
}  // namespace millrace::test
