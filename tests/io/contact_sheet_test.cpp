// Tests of io/contact_sheet.cpp: what stands where, read back from the file.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "io/image_write.h"
#include "random_image.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

using Pixel = std::array<int, 3>;

Image8 flat(uint32_t width, uint32_t height, uint8_t value) {
  return {width, height, 3, std::vector<uint8_t>(3ull * width * height, value)};
}

Pixel pixel_at(const Image8& image, size_t x, size_t y) {
  const uint8_t* p = &image.pixels[(y * image.width + x) * image.channels];
  return {p[0], p[1], p[2]};
}

size_t count(const Image8& image, const Pixel& color) {
  size_t n = 0;
  for (size_t y = 0; y < image.height; ++y) {
    for (size_t x = 0; x < image.width; ++x) n += pixel_at(image, x, y) == color;
  }
  return n;
}

Image8 sheet_of(const TemporaryFolder& folder, const std::vector<ContactRow>& rows,
                uint32_t max_width = 1920) {
  const Result<void> written = write_contact_sheet(folder / "sheet.png", rows, max_width);
  EXPECT_TRUE(written.ok()) << written.error().message;
  return read_image(folder / "sheet.png").or_raise();
}

TEST(ContactSheet, ShowsPhotoRenderAndFourTimesTheError) {
  const TemporaryFolder folder;
  const Image8 sheet = sheet_of(folder, {{"one", flat(100, 50, 200), flat(100, 50, 190)},
                                         {"two", flat(100, 50, 100), flat(100, 50, 180)}});
  EXPECT_EQ(count(sheet, {200, 200, 200}), 5000u);
  EXPECT_EQ(count(sheet, {190, 190, 190}), 5000u);
  EXPECT_EQ(count(sheet, {40, 40, 40}), 5000u);
  EXPECT_EQ(count(sheet, {255, 255, 255}), 5000u);  // 4 x 80, clamped
}

TEST(ContactSheet, NeverExceedsTheWidthAndScalesTilesDown) {
  const TemporaryFolder folder;
  for (const size_t n_rows : {1, 2, 5, 20, 50}) {
    std::vector<ContactRow> rows;
    for (size_t i = 0; i < n_rows; ++i) {
      rows.push_back({"view " + std::to_string(i), flat(300, 200 + 10 * (i % 3), 250),
                      flat(300, 200 + 10 * (i % 3), 250)});
    }
    for (const uint32_t max_width : {300u, 640u, 1920u}) {
      const Image8 sheet = sheet_of(folder, rows, max_width);
      EXPECT_LE(sheet.width, max_width) << n_rows;
      EXPECT_GT(count(sheet, {250, 250, 250}), 0u);
    }
  }
}

TEST(ContactSheet, CaptionsAreDrawnWithinTheirGroup) {
  const TemporaryFolder folder;
  const std::vector<ContactRow> plain = {{"", flat(60, 40, 0), flat(60, 40, 0)}};
  std::vector<ContactRow> titled = plain;
  titled[0].caption = std::string(500, 'M') + "\n\xC3\xA4";
  const Image8 a = sheet_of(folder, plain), b = sheet_of(folder, titled);
  ASSERT_EQ(a.width, b.width);
  ASSERT_EQ(a.height, b.height);
  EXPECT_NE(a.pixels, b.pixels);
  for (size_t y = 0; y < b.height; ++y) {
    EXPECT_EQ(pixel_at(b, b.width - 1, y), pixel_at(a, 0, 0));
  }
}

TEST(ContactSheet, TakesAlphaAndTinyImages) {
  const TemporaryFolder folder;
  Image8 rgba{1, 1, 4, {255, 255, 255, 128}};
  const Image8 sheet = sheet_of(folder, {{"dot", rgba, flat(1, 1, 128)}});
  EXPECT_EQ(count(sheet, {128, 128, 128}), 2u);
}

TEST(ContactSheet, RefusesNoRowsAndDifferentSizes) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_contact_sheet(folder / "a.png", {}).error().code, ErrorCode::Internal);
  const Result<void> sizes =
      write_contact_sheet(folder / "a.png", {{"odd", flat(4, 4, 0), flat(4, 5, 0)}});
  ASSERT_FALSE(sizes.ok());
  EXPECT_NE(sizes.error().message.find("odd"), std::string::npos);
}

}  // namespace
}  // namespace millrace
