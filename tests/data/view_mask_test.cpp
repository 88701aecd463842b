// Masks as trained: in the place of their photograph, whatever the file's size and form.
#include "data/view_mask.h"

#include <gtest/gtest.h>

#include "data/capture_writer.h"

namespace millrace::test {
namespace {

View view_of(uint32_t width, uint32_t height) {
  View view;
  view.file_width = width, view.file_height = height;
  view.lens = {LensKind::Pinhole, width, height, 30, 30, 16, 12, 0, 0, 0, 0};
  view.camera = {width, height, 30, 30, width / 2.0, height / 2.0, {}};
  return view;
}

// White left of `edge` x width.
Image8 half_image(uint32_t width, uint32_t height, double edge, uint32_t channels) {
  Image8 image{width, height, channels, {}, {}};
  for (uint32_t i = 0; i < width * height; ++i) {
    const bool inside = i % width < edge * width;
    for (uint32_t c = 0; c < channels; ++c) image.pixels.push_back(inside ? 255 : 0);
  }
  return image;
}

View with_mask(const TempFolder& folder, const Image8& mask) {
  View view = view_of(32, 24);
  view.mask_path = folder / "mask.png";
  view.mask_width = mask.width;
  view.mask_height = mask.height;
  write_png(view.mask_path, mask);
  return view;
}

void expect_half(const std::vector<uint8_t>& mask, const char* what) {
  ASSERT_EQ(mask.size(), 32u * 24u) << what;
  for (uint32_t i = 0; i < mask.size(); ++i) {
    const uint32_t x = i % 32;
    if (x == 7 || x == 8) continue;
    EXPECT_EQ(mask[i], x < 8 ? 255 : 0) << what << " " << i;
  }
}

TEST(ViewMask, ComesAtTheSizeOfItsPhotograph) {
  const TempFolder folder;
  for (const uint32_t times : {1, 2, 3}) {
    const View view = with_mask(folder, half_image(32 * times, 24 * times, 0.25, 3));
    expect_half(load_view_mask(view).or_raise(), "larger or equal");
  }
  expect_half(load_view_mask(with_mask(folder, half_image(16, 12, 0.25, 3))).or_raise(), "smaller");
}

TEST(ViewMask, IsTheAlphaOfAFileThatHasOne) {
  const TempFolder folder;
  Image8 mask = half_image(32, 24, 0.25, 4);
  for (size_t i = 0; i < mask.pixels.size(); i += 4) mask.pixels[i] = 77;
  expect_half(load_view_mask(with_mask(folder, mask)).or_raise(), "alpha");
  // Opaque everywhere: then the colours say it.
  mask = half_image(32, 24, 0.25, 4);
  for (size_t i = 3; i < mask.pixels.size(); i += 4) mask.pixels[i] = 255;
  expect_half(load_view_mask(with_mask(folder, mask)).or_raise(), "opaque");
}

TEST(ViewMask, MovesWithTheLensAsItsPhotographDoes) {
  const TempFolder folder;
  // The photograph and its mask are one picture: seen through the lens they stay so.
  const Image8 picture = half_image(32, 24, 0.4, 3);
  View view = with_mask(folder, picture);
  view.image_path = folder / "photo.png";
  write_png(view.image_path, picture);
  view.lens.kind = LensKind::OpenCv;
  view.lens.k1 = -0.2;
  view.camera.width = 28, view.camera.height = 20;
  view.camera.cx = 14, view.camera.cy = 10;
  const Image8 photo = load_view_image(view, {0, 0, 0}).or_raise();
  ASSERT_EQ(photo.mask.size(), 28u * 20u);
  for (size_t i = 0; i < photo.mask.size(); ++i) EXPECT_EQ(photo.mask[i], photo.pixels[3 * i]) << i;
}

TEST(ViewMask, OfAPhotographsAlphaKeepsTheCompositedPhotograph) {
  const TempFolder folder;
  View view = view_of(32, 24);
  view.image_path = folder / "photo.png";
  write_png(view.image_path, half_image(32, 24, 0.25, 4));
  EXPECT_TRUE(image_has_alpha(view.image_path));
  EXPECT_TRUE(load_view_image(view, {0, 0, 0}).or_raise().mask.empty()) << "not asked for";
  view.mask_from_alpha = true;
  const Image8 photo = load_view_image(view, {0, 1, 0}).or_raise();
  expect_half(photo.mask, "alpha");
  EXPECT_EQ(photo.channels, 3u);
  EXPECT_EQ(photo.pixels[3 * 20 + 1], 255) << "behind it is the background";
}

TEST(ViewMask, ThatChangedSinceTheDatasetWasReadIsAnError) {
  const TempFolder folder;
  View view = with_mask(folder, half_image(32, 24, 0.5, 3));
  write_png(view.mask_path, half_image(16, 12, 0.5, 3));
  const auto mask = load_view_mask(view);
  ASSERT_FALSE(mask.ok());
  EXPECT_NE(mask.error().message.find("16x12 now"), std::string::npos);
}

}  // namespace
}  // namespace millrace::test
