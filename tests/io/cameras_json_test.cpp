// Tests of io/cameras_json.cpp.
#include "io/cameras_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "temporary_folder.h"

namespace millrace {
namespace {

Result<std::vector<NamedCamera>> read_text(const TemporaryFolder& folder, const std::string& text) {
  std::ofstream(folder / "cameras.json", std::ios::binary) << text;
  return read_cameras_json(folder / "cameras.json");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

const std::string kOne = R"([{"id":0,"img_name":"a/b","width":64,"height":48,"position":[1,2,3],)"
                         R"("rotation":[[0,-1,0],[1,0,0],[0,0,1]],"fx":70,"fy":71}])";

TEST(CamerasJson, RoundTripKeepsCameras) {
  const TemporaryFolder folder;
  std::vector<NamedCamera> cameras;
  for (int i = 0; i < 5; ++i) {
    const double a = 0.3 * i, b = 0.7 * i + 0.1;
    NamedCamera named;
    named.name = i == 3 ? "ordner/m\xC3\xBChle.jpg" : "view_" + std::to_string(i) + ".png";
    named.camera.width = 640u + static_cast<uint32_t>(i);
    named.camera.height = 480;
    named.camera.fx = 500.0 / 3 + i;
    named.camera.fy = 501.1;
    named.camera.cx = 319.3;
    named.camera.cy = 240.7;
    const double ca = std::cos(a), sa = std::sin(a), cb = std::cos(b), sb = std::sin(b);
    named.camera.world_to_camera = {ca,      -sa,     0,   0.5 * i,  //
                                    sa * cb, ca * cb, -sb, -2.25,    //
                                    sa * sb, ca * sb, cb,  1e3 / 7};
    cameras.push_back(named);
  }
  ASSERT_TRUE(write_cameras_json(folder / "out/cameras.json", cameras).ok());
  const auto read = read_cameras_json(folder / "out/cameras.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().size(), cameras.size());
  for (size_t i = 0; i < cameras.size(); ++i) {
    const Camera &a = cameras[i].camera, &b = read.value()[i].camera;
    EXPECT_EQ(read.value()[i].name, cameras[i].name);
    EXPECT_EQ(a.width, b.width);
    EXPECT_EQ(a.height, b.height);
    EXPECT_EQ(a.fx, b.fx);
    EXPECT_EQ(a.fy, b.fy);
    EXPECT_EQ(a.cx, b.cx);
    EXPECT_EQ(a.cy, b.cy);
    for (size_t k = 0; k < 12; ++k) {
      EXPECT_NEAR(a.world_to_camera[k], b.world_to_camera[k], 1e-12);
    }
  }
}

TEST(CamerasJson, ReadsRotationAsCameraToWorldAndCentresThePrincipalPoint) {
  const TemporaryFolder folder;
  const auto read = read_text(folder, kOne);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Camera& camera = read.value()[0].camera;
  EXPECT_EQ(read.value()[0].name, "a/b");
  EXPECT_EQ(camera.cx, 32);
  EXPECT_EQ(camera.cy, 24);
  // The transpose of the rotation, and -R^T p.
  const std::array<double, 12> expected = {0, 1, 0, -2, -1, 0, 0, 1, 0, 0, 1, -3};
  EXPECT_EQ(camera.world_to_camera, expected);
}

TEST(CamerasJson, NamesTheEntryAndKeyOfWhatIsWrong) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {replaced(kOne, "\"fx\":70,", ""), "fx"},
      {replaced(kOne, "\"fx\":70", "\"fx\":-70"), "fx"},
      {replaced(kOne, "\"fy\":71", "\"fy\":\"71\""), "fy"},
      {replaced(kOne, "64", "0"), "width"},
      {replaced(kOne, "48", "48.5"), "height"},
      {replaced(kOne, "[1,2,3]", "[1,2]"), "position"},
      {replaced(kOne, "[1,2,3]", "[1,2,null]"), "position"},
      {replaced(kOne, "[0,-1,0]", "[0,-2,0]"), "rotation"},
      {replaced(kOne, "[0,-1,0]", "[0,1,0]"), "rotation"},
      {replaced(kOne, "[0,-1,0],", ""), "rotation"},
      {replaced(kOne, "a/b", "../b"), "img_name"},
      {replaced(kOne, "a/b", "/b"), "img_name"},
  };
  for (const auto& [text, key] : cases) {
    const auto read = read_text(folder, text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::Dataset);
    EXPECT_NE(read.error().message.find("entry 0, key \"" + key + "\""), std::string::npos)
        << read.error().message;
  }
}

TEST(CamerasJson, TellsWhereTheFileIsNoJson) {
  const TemporaryFolder folder;
  const auto broken = read_text(folder, "[{\"id\":0,}]");
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().message.find("byte 10"), std::string::npos) << broken.error().message;
  EXPECT_FALSE(read_text(folder, "{}").ok());
  EXPECT_FALSE(read_text(folder, "[3]").ok());
  EXPECT_FALSE(read_text(folder, "").ok());
  EXPECT_TRUE(read_text(folder, "[]").ok());
}

}  // namespace
}  // namespace millrace
