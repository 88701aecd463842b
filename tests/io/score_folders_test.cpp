// Tests of io/score_folders.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "io/metrics.h"
#include "random_image.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

TEST(ScoreFolders, PairsBySubfolderAndNameAndKeepsSixteenBits) {
  const TemporaryFolder folder;
  const ImageF image = wave_image(40, 40);
  ImageF shifted = image;
  for (float& value : shifted.pixels) value += 0.0005f;  // an eighth of an 8-bit step
  ASSERT_TRUE(write_png16(folder / "photos/a/one.png", image).ok());
  ASSERT_TRUE(write_png16(folder / "photos/two.png", image).ok());
  ASSERT_TRUE(write_png16(folder / "photos/unused.png", image).ok());
  ASSERT_TRUE(write_png16(folder / "renders/a/one.png", shifted).ok());
  ASSERT_TRUE(write_png16(folder / "renders/two.png", image).ok());
  const auto scores = score_folders(folder / "renders", folder / "photos");
  ASSERT_TRUE(scores.ok()) << scores.error().message;
  ASSERT_EQ(scores.value().size(), 2u);
  EXPECT_EQ(scores.value()[0].name, "a/one.png");
  EXPECT_EQ(scores.value()[1].name, "two.png");
  EXPECT_NEAR(scores.value()[0].score.psnr, -20 * std::log10(0.0005), 0.1);
  EXPECT_EQ(scores.value()[1].score.psnr, 100);
}

TEST(ScoreFolders, AnyImageExtensionMatchesAndTheSameOneIsPreferred) {
  const TemporaryFolder folder;
  const Image8 white = to_8bit({16, 16, std::vector<float>(16 * 16 * 3, 1.0f)});
  const Image8 black = to_8bit({16, 16, std::vector<float>(16 * 16 * 3, 0.0f)});
  // The content decides, so a PNG may be called anything.
  ASSERT_TRUE(write_png8(folder / "photos/a.JPG", white).ok());
  ASSERT_TRUE(write_png8(folder / "photos/b.bmp", black).ok());
  ASSERT_TRUE(write_png8(folder / "photos/b.png", white).ok());
  ASSERT_TRUE(write_png8(folder / "renders/a.png", white).ok());
  ASSERT_TRUE(write_png8(folder / "renders/b.png", white).ok());
  const auto scores = score_folders(folder / "renders", folder / "photos");
  ASSERT_TRUE(scores.ok()) << scores.error().message;
  for (const FileScore& file : scores.value()) EXPECT_EQ(file.score.psnr, 100) << file.name;

  ASSERT_TRUE(write_png8(folder / "photos/a.webp", white).ok());
  const auto ambiguous = score_folders(folder / "renders", folder / "photos");
  ASSERT_FALSE(ambiguous.ok());
  EXPECT_NE(ambiguous.error().message.find("a.png"), std::string::npos);
}

TEST(ScoreFolders, NamesRendersWithoutAPhotograph) {
  const TemporaryFolder folder;
  const Image8 image = to_8bit(wave_image(16, 16));
  ASSERT_TRUE(write_png8(folder / "photos/a.png", image).ok());
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(write_png8(folder / ("renders/" + std::string(name) + ".png"), image).ok());
  }
  const auto scores = score_folders(folder / "renders", folder / "photos");
  ASSERT_FALSE(scores.ok());
  EXPECT_EQ(scores.error().code, ErrorCode::Dataset);
  EXPECT_NE(scores.error().message.find("2 of 3"), std::string::npos) << scores.error().message;
  EXPECT_NE(scores.error().message.find("b.png, c.png"), std::string::npos);
}

TEST(ScoreFolders, NamesRendersOfAnotherSize) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_png8(folder / "photos/a.png", to_8bit(wave_image(16, 16))).ok());
  ASSERT_TRUE(write_png8(folder / "renders/a.png", to_8bit(wave_image(16, 17))).ok());
  const auto scores = score_folders(folder / "renders", folder / "photos");
  ASSERT_FALSE(scores.ok());
  EXPECT_NE(scores.error().message.find("a.png (16 x 17, photograph 16 x 16)"), std::string::npos)
      << scores.error().message;
}

TEST(ScoreFolders, MissingAndEmptyFoldersAreErrors) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "renders");
  std::filesystem::create_directories(folder / "photos");
  EXPECT_NE(score_folders(folder / "none", folder / "photos").error().message.find("none"),
            std::string::npos);
  EXPECT_NE(score_folders(folder / "renders", folder / "photos").error().message.find("no image"),
            std::string::npos);
}

}  // namespace
}  // namespace millrace
