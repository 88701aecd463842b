// Tests of io/ply.cpp: what is written to the byte, and what is read from any PLY.
#include "io/ply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/philox.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

GaussianCloud random_cloud(size_t n, int sh_degree) {
  GaussianCloud cloud;
  cloud.sh_degree = sh_degree;
  auto fill = [stream = 0u](std::vector<float>& values, size_t count) mutable {
    ++stream;
    for (uint32_t i = 0; i < count; ++i) {
      const auto words = philox(1, stream, RandomPurpose::Synthetic, i);
      values.push_back(normal_pair(words[0], words[1])[0]);
    }
  };
  fill(cloud.means, 3 * n);
  fill(cloud.log_scales, 3 * n);
  fill(cloud.rotations, 4 * n);
  fill(cloud.opacities, n);
  fill(cloud.sh0, 3 * n);
  fill(cloud.sh_rest, 3 * n * static_cast<size_t>(sh_rest_count(sh_degree)));
  return cloud;
}

void expect_equal(const GaussianCloud& a, const GaussianCloud& b) {
  EXPECT_EQ(a.sh_degree, b.sh_degree);
  EXPECT_EQ(a.means, b.means);
  EXPECT_EQ(a.log_scales, b.log_scales);
  EXPECT_EQ(a.rotations, b.rotations);
  EXPECT_EQ(a.opacities, b.opacities);
  EXPECT_EQ(a.sh0, b.sh0);
  EXPECT_EQ(a.sh_rest, b.sh_rest);
}

Result<GaussianCloud> read_text(const TemporaryFolder& folder, const std::string& text) {
  std::ofstream(folder / "in.ply", std::ios::binary) << text;
  return read_gaussian_ply(folder / "in.ply");
}

// The message of the error that reading `text` must give.
std::string error_of(const TemporaryFolder& folder, const std::string& text) {
  const Result<GaussianCloud> cloud = read_text(folder, text);
  if (cloud.ok()) return "no error";
  EXPECT_EQ(cloud.error().code, ErrorCode::Dataset);
  EXPECT_NE(cloud.error().message.find("in.ply"), std::string::npos) << cloud.error().message;
  return cloud.error().message;
}

std::string properties(const std::vector<std::string>& names, const std::string& type = "float") {
  std::string out;
  for (const std::string& name : names) out += "property " + type + " " + name + "\n";
  return out;
}

// Brush's order: no normals, and no f_rest at degree 0.
const std::vector<std::string> kBrushNames = {"x",       "y",       "z",      "scale_0", "scale_1",
                                              "scale_2", "opacity", "rot_0",  "rot_1",   "rot_2",
                                              "rot_3",   "f_dc_0",  "f_dc_1", "f_dc_2"};
const std::string kBrushAscii =
    "ply\nformat ascii 1.0\ncomment Exported from Brush\nelement vertex 2\n" +
    properties(kBrushNames) + "end_header\n" + "1 2 3 4 5 6 7 8 9 10 11 12 13 14\n" +
    "-1 -2 -3 -4 -5 -6 -7 -8 -9 -10 -11 -12 -13 -14\n";

template <class T>
void append_number(std::string& out, T value, bool big_endian) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  if (big_endian) std::reverse(raw, raw + sizeof(T));
  out.append(raw, sizeof(T));
}

TEST(Ply, RoundTripKeepsEveryFloatAtEveryDegree) {
  const TemporaryFolder folder;
  for (int degree = 0; degree <= 3; ++degree) {
    const GaussianCloud cloud = random_cloud(37, degree);
    ASSERT_TRUE(write_gaussian_ply(folder / "a.ply", cloud).ok());
    const Result<GaussianCloud> read = read_gaussian_ply(folder / "a.ply");
    ASSERT_TRUE(read.ok()) << read.error().message;
    expect_equal(read.value(), cloud);
  }
}

TEST(Ply, KeepsWhetherTheMipFilterBelongsToIt) {
  const TemporaryFolder folder;
  GaussianCloud cloud = random_cloud(3, 1);
  for (const bool mip_filter : {true, false}) {
    cloud.mip_filter = mip_filter;
    write_gaussian_ply(folder / "a.ply", cloud).or_raise();
    const GaussianCloud read = read_gaussian_ply(folder / "a.ply").or_raise();
    EXPECT_EQ(read.mip_filter, mip_filter);
    expect_equal(read, cloud);
  }
  // As others write it, and other words.
  const auto mip_of = [&](const std::string& comment) {
    const std::string names =
        "x y z opacity scale_0 scale_1 scale_2 rot_0 rot_1 rot_2 rot_3 "
        "f_dc_0 f_dc_1 f_dc_2 ";
    std::string text = "ply\r\nformat ascii 1.0\r\n" + comment + "\r\nelement vertex 1\r\n";
    for (size_t at = 0, end; (end = names.find(' ', at)) != std::string::npos; at = end + 1) {
      text += "property float " + names.substr(at, end - at) + "\r\n";
    }
    return read_text(folder, text + "end_header\r\n0 0 1 2 3 4 5 1 0 0 0 1 1 1\r\n")
        .or_raise()
        .mip_filter;
  };
  EXPECT_TRUE(mip_of("comment   SplatRenderMode: mip "));
  EXPECT_FALSE(mip_of("comment SplatRenderMode: default"));
  EXPECT_FALSE(mip_of("comment"));
}

TEST(Ply, PieceByPieceIsTheSameFile) {
  const TemporaryFolder folder;
  GaussianCloud both = random_cloud(5, 2);
  const GaussianCloud second = random_cloud(3, 2);
  GaussianPlyWriter writer = GaussianPlyWriter::create(folder / "a.ply", 8, 2, false).or_raise();
  ASSERT_TRUE(writer.add(both).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "a.ply"));
  ASSERT_TRUE(writer.add(second).ok() && writer.finish().ok());
  for (auto values : {&GaussianCloud::means, &GaussianCloud::log_scales, &GaussianCloud::rotations,
                      &GaussianCloud::opacities, &GaussianCloud::sh0, &GaussianCloud::sh_rest}) {
    (both.*values).insert((both.*values).end(), (second.*values).begin(), (second.*values).end());
  }
  ASSERT_TRUE(write_gaussian_ply(folder / "b.ply", both).ok());
  EXPECT_EQ(read_file(folder / "a.ply").or_raise(), read_file(folder / "b.ply").or_raise());
}

TEST(Ply, WithoutAllItsPiecesLeavesNoFile) {
  const TemporaryFolder folder;
  EXPECT_FALSE(GaussianPlyWriter::create(folder / "a.ply", 8, 1, false).or_raise().finish().ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
}

TEST(Ply, WritesTheInriaLayoutToTheByte) {
  const TemporaryFolder folder;
  GaussianCloud cloud;
  cloud.sh_degree = 1;
  cloud.means = {1, 2, 3};
  cloud.sh0 = {4, 5, 6};
  cloud.sh_rest = {11, 21, 31, 12, 22, 32, 13, 23, 33};  // coefficient-major, channels 1x 2x 3x
  cloud.opacities = {7};
  cloud.log_scales = {8, 9, 10};
  cloud.rotations = {0.5f, 0.25f, 0.125f, 1};
  ASSERT_TRUE(write_gaussian_ply(folder / "sub/a.ply", cloud).ok());
  std::string expected =
      "ply\nformat binary_little_endian 1.0\nelement vertex 1\n" +
      properties({"x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"}) +
      properties({"f_rest_0", "f_rest_1", "f_rest_2", "f_rest_3", "f_rest_4", "f_rest_5",
                  "f_rest_6", "f_rest_7", "f_rest_8", "opacity"}) +
      properties({"scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"}) +
      "end_header\n";
  for (const float v :
       {1.f,  2.f,  3.f,  0.f,  0.f,  0.f, 4.f, 5.f, 6.f,  11.f, 12.f,  13.f,   21.f,
        22.f, 23.f, 31.f, 32.f, 33.f, 7.f, 8.f, 9.f, 10.f, 0.5f, 0.25f, 0.125f, 1.f}) {
    append_number(expected, v, false);
  }
  EXPECT_EQ(read_text_file(folder / "sub/a.ply").value(), expected);
}

TEST(Ply, WriterRefusesNonFiniteValuesAndNamesTheRows) {
  const TemporaryFolder folder;
  GaussianCloud cloud = random_cloud(10, 1);
  cloud.means[3 * 4 + 1] = std::numeric_limits<float>::quiet_NaN();
  cloud.sh_rest[7 * 9 + 2] = std::numeric_limits<float>::infinity();
  const Result<void> written = write_gaussian_ply(folder / "a.ply", cloud);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::Internal);
  EXPECT_NE(written.error().message.find("2 of 10"), std::string::npos) << written.error().message;
  EXPECT_NE(written.error().message.find("row 4 (means[1]"), std::string::npos);
  EXPECT_NE(written.error().message.find("row 7 (sh_rest[2]"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.ply"));
}

TEST(Ply, WriterRefusesArraysOfTheWrongLength) {
  const TemporaryFolder folder;
  GaussianCloud cloud = random_cloud(3, 2);
  cloud.sh_rest.pop_back();
  EXPECT_EQ(write_gaussian_ply(folder / "a.ply", cloud).error().code, ErrorCode::Internal);
}

TEST(Ply, WriterTellsThatTheFolderCannotBeMade) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  EXPECT_EQ(write_gaussian_ply(folder / "file/a.ply", random_cloud(1, 0)).error().code,
            ErrorCode::Output);
}

TEST(Ply, ReadsAsciiInAnotherOrderWithoutNormalsOrRest) {
  const TemporaryFolder folder;
  const Result<GaussianCloud> cloud = read_text(folder, kBrushAscii);
  ASSERT_TRUE(cloud.ok()) << cloud.error().message;
  EXPECT_EQ(cloud.value().sh_degree, 0);
  EXPECT_EQ(cloud.value().means, (std::vector<float>{1, 2, 3, -1, -2, -3}));
  EXPECT_EQ(cloud.value().log_scales, (std::vector<float>{4, 5, 6, -4, -5, -6}));
  EXPECT_EQ(cloud.value().opacities, (std::vector<float>{7, -7}));
  EXPECT_EQ(cloud.value().rotations, (std::vector<float>{8, 9, 10, 11, -8, -9, -10, -11}));
  EXPECT_EQ(cloud.value().sh0, (std::vector<float>{12, 13, 14, -12, -13, -14}));
}

TEST(Ply, ReadsCrlfHeaders) {
  const TemporaryFolder folder;
  std::string text;
  for (const char c : kBrushAscii) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const Result<GaussianCloud> ascii = read_text(folder, text);
  ASSERT_TRUE(ascii.ok()) << ascii.error().message;
  EXPECT_EQ(ascii.value().means[5], -3);

  std::string binary = "ply\r\nformat binary_little_endian 1.0\r\nelement vertex 1\r\n";
  for (const std::string& name : kBrushNames) binary += "property float " + name + "\r\n";
  binary += "end_header\r\n";
  for (int i = 0; i < 14; ++i) append_number(binary, static_cast<float>(i), false);
  const Result<GaussianCloud> cloud = read_text(folder, binary);
  ASSERT_TRUE(cloud.ok()) << cloud.error().message;
  EXPECT_EQ(cloud.value().sh0, (std::vector<float>{11, 12, 13}));
}

TEST(Ply, ReadsBigEndianMixedTypesListsAndExtraElements) {
  const TemporaryFolder folder;
  std::string text =
      "ply\nformat binary_big_endian 1.0\nelement face 2\n"
      "property list uchar int vertex_indices\nproperty short tag\n"
      "element vertex 2\n" +
      properties({"x", "y", "z"}, "double") + "property list ushort float extra\n" +
      properties(std::vector<std::string>(kBrushNames.begin() + 3, kBrushNames.end())) +
      "property uchar label\nelement tail 1\nproperty int t\nend_header\n";
  for (int face = 0; face < 2; ++face) {
    append_number(text, static_cast<uint8_t>(face + 1), true);
    for (int i = 0; i <= face; ++i) append_number(text, int32_t{77}, true);
    append_number(text, int16_t{-5}, true);
  }
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 3; ++i) append_number(text, 100.0 * row + i + 0.5, true);
    append_number(text, static_cast<uint16_t>(row), true);
    for (int i = 0; i < row; ++i) append_number(text, 9.0f, true);
    for (int i = 3; i < 14; ++i) append_number(text, static_cast<float>(100 * row + i), true);
    append_number(text, uint8_t{3}, true);
  }
  append_number(text, int32_t{1}, true);
  const Result<GaussianCloud> cloud = read_text(folder, text);
  ASSERT_TRUE(cloud.ok()) << cloud.error().message;
  EXPECT_EQ(cloud.value().means, (std::vector<float>{0.5f, 1.5f, 2.5f, 100.5f, 101.5f, 102.5f}));
  EXPECT_EQ(cloud.value().sh0, (std::vector<float>{11, 12, 13, 111, 112, 113}));
}

TEST(Ply, CutsDegreeFourToDegreeThree) {
  const TemporaryFolder folder;
  std::vector<std::string> names = kBrushNames;
  for (int i = 0; i < 72; ++i) names.push_back("f_rest_" + std::to_string(i));
  std::string text =
      "ply\nformat ascii 1.0\nelement vertex 1\n" + properties(names) + "end_header\n";
  for (int i = 0; i < 14; ++i) text += "0 ";
  for (int i = 0; i < 72; ++i) text += std::to_string(1000 * (i / 24) + i % 24) + " ";
  const Result<GaussianCloud> cloud = read_text(folder, text);
  ASSERT_TRUE(cloud.ok()) << cloud.error().message;
  EXPECT_EQ(cloud.value().sh_degree, 3);
  ASSERT_EQ(cloud.value().sh_rest.size(), 45u);
  for (size_t k = 0; k < 15; ++k) {
    for (size_t channel = 0; channel < 3; ++channel) {
      EXPECT_EQ(cloud.value().sh_rest[3 * k + channel], 1000.0f * channel + k);
    }
  }
}

TEST(Ply, TakesColoursWhereFdcIsMissing) {
  const TemporaryFolder folder;
  const std::vector<std::string> names(kBrushNames.begin(), kBrushNames.end() - 3);
  const Result<GaussianCloud> cloud =
      read_text(folder, "ply\nformat ascii 1.0\nelement vertex 1\n" + properties(names) +
                            properties({"red", "green", "blue"}, "uchar") +
                            "end_header\n1 2 3 4 5 6 7 8 9 10 11 255 0 51\n");
  ASSERT_TRUE(cloud.ok()) << cloud.error().message;
  EXPECT_NEAR(cloud.value().sh0[0], 0.5 / 0.28209479, 1e-5);
  EXPECT_NEAR(cloud.value().sh0[1], -0.5 / 0.28209479, 1e-5);
  EXPECT_NEAR(cloud.value().sh0[2], -0.3 / 0.28209479, 1e-5);
}

TEST(Ply, MakesInfiniteOpacityAndFlatScalesFinite) {
  const TemporaryFolder folder;
  const Result<GaussianCloud> cloud =
      read_text(folder, "ply\nformat ascii 1.0\nelement vertex 2\n" + properties(kBrushNames) +
                            "end_header\n1 2 3 4 5 -inf inf 1 0 0 0 12 13 14\n"
                            "1 2 3 4 5 6 -inf 1 0 0 0 12 13 14\n");
  ASSERT_TRUE(cloud.ok()) << cloud.error().message;
  EXPECT_EQ(cloud.value().log_scales[2], -30.0f);
  EXPECT_EQ(cloud.value().opacities, (std::vector<float>{20, -20}));
}

TEST(Ply, NamesTheRowOfANonFiniteValue) {
  const TemporaryFolder folder;
  std::string text = kBrushAscii;
  text.replace(text.find("-2 -3"), 2, "nan");
  EXPECT_NE(error_of(folder, text).find("row 1"), std::string::npos);
}

TEST(Ply, NamesMissingProperties) {
  const TemporaryFolder folder;
  const std::string cloud =
      error_of(folder, "ply\nformat ascii 1.0\nelement vertex 1\n" + properties({"x", "y", "z"}) +
                           "end_header\n1 2 3\n");
  EXPECT_NE(cloud.find("scale_0, scale_1, scale_2, rot_0"), std::string::npos) << cloud;
  EXPECT_NE(cloud.find("point cloud"), std::string::npos) << cloud;
  EXPECT_NE(error_of(folder, "ply\nformat ascii 1.0\nelement face 0\nend_header\n").find("vertex"),
            std::string::npos);
  const std::string packed =
      error_of(folder, "ply\nformat ascii 1.0\nelement vertex 0\n" +
                           properties({"packed_position"}, "uint") + "end_header\n");
  EXPECT_NE(packed.find("compressed PLY"), std::string::npos) << packed;
}

TEST(Ply, RefusesAnOddNumberOfRestCoefficients) {
  const TemporaryFolder folder;
  std::vector<std::string> names = kBrushNames;
  for (int i = 0; i < 10; ++i) names.push_back("f_rest_" + std::to_string(i));
  const std::string message = error_of(
      folder, "ply\nformat ascii 1.0\nelement vertex 0\n" + properties(names) + "end_header\n");
  EXPECT_NE(message.find("10 properties f_rest_*"), std::string::npos) << message;
}

TEST(Ply, RefusesCountsTheFileCannotHoldBeforeAllocating) {
  const TemporaryFolder folder;
  for (const std::string format : {"ascii", "binary_little_endian"}) {
    for (const std::string count : {"3", "1000000000000", "18446744073709551615"}) {
      std::string text = kBrushAscii;
      text.replace(text.find("ascii"), 5, format);
      text.replace(text.find("vertex 2"), 8, "vertex " + count);
      EXPECT_NE(error_of(folder, text).find(count), std::string::npos) << format << " " << count;
    }
  }
}

TEST(Ply, EveryTruncationOfAFileIsAnErrorThatNamesAByteOrALine) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_gaussian_ply(folder / "a.ply", random_cloud(3, 0)).ok());
  const std::string binary = read_text_file(folder / "a.ply").value();
  for (const std::string& whole : {binary, kBrushAscii.substr(0, kBrushAscii.size() - 2)}) {
    for (size_t length = 0; length < whole.size(); ++length) {
      const Result<GaussianCloud> cloud = read_text(folder, whole.substr(0, length));
      // A cut within the last ascii number leaves a shorter number, which no reader can notice.
      if (cloud.ok() && &whole != &binary && length + 2 >= whole.size()) continue;
      ASSERT_FALSE(cloud.ok()) << length;
      const std::string& message = cloud.error().message;
      EXPECT_TRUE(message.find("byte") != std::string::npos ||
                  message.find("line") != std::string::npos ||
                  message.find("empty") != std::string::npos ||
                  message.find("begins with") != std::string::npos)
          << message;
    }
  }
}

TEST(Ply, GarbledHeadersNameTheLine) {
  const TemporaryFolder folder;
  const std::string start = "ply\nformat ascii 1.0\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"pyl\n", "line 1"},
      {"ply\nformat binary 1.0\n", "line 2"},
      {"ply\nformat ascii 2.0\n", "line 2"},
      {"ply\nend_header\n", "line 2"},
      {start + "format ascii 1.0\n", "line 3"},
      {start + "element vertex -1\n", "line 3"},
      {start + "element vertex 1x\n", "line 3"},
      {start + "element vertex 99999999999999999999999\n", "line 3"},
      {start + "element vertex\n", "line 3"},
      {start + "property float x\n", "line 3"},
      {start + "nonsense\n", "line 3"},
      {start + "element vertex 1\nproperty half x\n", "line 4"},
      {start + "element vertex 1\nproperty float\n", "line 4"},
      {start + "element vertex 1\nproperty list float float x\n", "line 4"},
      {start + "element vertex 1\nproperty float x\nproperty float x\n", "line 5"},
      {start + "element vertex 1\nelement vertex 1\n", "line 4"},
  };
  for (const auto& [text, place] : cases) {
    const std::string message = error_of(folder, text);
    EXPECT_NE(message.find(place), std::string::npos) << text << " gave " << message;
  }
  EXPECT_NE(error_of(folder, "\x89PNG garbage").find("not a PLY"), std::string::npos);
}

TEST(Ply, AsciiErrorsNameTheLineOfTheBody) {
  const TemporaryFolder folder;
  std::string text = kBrushAscii;
  text.replace(text.find("-13"), 3, "oops");
  const std::string message = error_of(folder, text);
  // 4 lines to "element vertex", 14 properties, end_header, then the second row.
  EXPECT_NE(message.find("line 21"), std::string::npos) << message;
  EXPECT_NE(message.find("oops"), std::string::npos) << message;
  EXPECT_NE(message.find("f_dc_1"), std::string::npos) << message;
}

TEST(Ply, FlippedBytesNeverCrashTheReader) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_gaussian_ply(folder / "a.ply", random_cloud(2, 0)).ok());
  const std::string whole = read_text_file(folder / "a.ply").value();
  for (uint32_t trial = 0; trial < 2000; ++trial) {
    std::string text = whole;
    const auto words = philox(7, trial, RandomPurpose::Synthetic, 0);
    for (size_t i = 0; i < 3; ++i) {
      text[words[i] % text.size()] = static_cast<char>(words[3] >> (8 * i));
    }
    const Result<GaussianCloud> cloud = read_text(folder, text);
    if (!cloud.ok()) continue;
    EXPECT_EQ(cloud.value().means.size(), 3 * cloud.value().count());
  }
}

TEST(Ply, MissingFilesAreNamed) {
  const TemporaryFolder folder;
  const Result<GaussianCloud> cloud = read_gaussian_ply(folder / "none.ply");
  ASSERT_FALSE(cloud.ok());
  EXPECT_NE(cloud.error().message.find("none.ply"), std::string::npos);
}

}  // namespace
}  // namespace millrace
