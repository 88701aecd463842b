// Tests of io/bitmap_font.cpp.
#include "io/bitmap_font.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace millrace {
namespace {

Image8 canvas(uint32_t width, uint32_t height) {
  return {width, height, 3, std::vector<uint8_t>(3ull * width * height, 0)};
}

std::string drawn(std::string_view text, uint32_t scale = 1) {
  Image8 image = canvas(kGlyphWidth * scale, kGlyphHeight * scale);
  draw_text(image, 0, 0, text, scale, {255, 255, 255});
  std::string out;
  for (uint32_t y = 0; y < image.height; ++y) {
    for (uint32_t x = 0; x < image.width; ++x) {
      out += image.pixels[(y * image.width + x) * 3] != 0 ? '#' : '.';
    }
    out += '\n';
  }
  return out;
}

TEST(BitmapFont, DrawsAnL) {
  EXPECT_EQ(drawn("L"), "#....\n#....\n#....\n#....\n#....\n#....\n#####\n");
}

TEST(BitmapFont, EveryCharacterHasItsOwnGlyph) {
  std::set<std::string> glyphs;
  for (char c = 32; c < 127; ++c) glyphs.insert(drawn(std::string(1, c)));
  EXPECT_EQ(glyphs.size(), 95u);
}

TEST(BitmapFont, ScaleRepeatsDots) {
  size_t once = 0, thrice = 0;
  for (const char c : drawn("R")) once += c == '#';
  for (const char c : drawn("R", 3)) thrice += c == '#';
  EXPECT_EQ(thrice, 9 * once);
}

TEST(BitmapFont, OtherCharactersBecomeQuestionMarks) {
  EXPECT_EQ(printable_ascii("a\xC3\xBC\xE6\xBC\xA2\tz"), "a???z");
}

TEST(BitmapFont, DrawingOutsideTheImageIsCutOff) {
  Image8 image = canvas(7, 3);
  draw_text(image, 5, 1, "MMMM", 2, {9, 9, 9});
  draw_text(image, 100, 100, "M", 2, {9, 9, 9});
  EXPECT_EQ(image.pixels.size(), 63u);
}

TEST(BitmapFont, LongTextIsCutWithDots) {
  EXPECT_EQ(fit_text("abcdef", 6 * 6 - 1, 1), "abcdef");
  EXPECT_EQ(fit_text("abcdefg", 6 * 6 - 1, 1), "abc...");
  EXPECT_EQ(fit_text("abcdefg", 2 * (6 * 6 - 1), 2), "abc...");
  EXPECT_EQ(fit_text("abcdefg", 3, 1), "");
}

}  // namespace
}  // namespace millrace
