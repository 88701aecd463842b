// Image formats, resizing and compositing.
#include "data/image.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "capture_writer.h"
#include "data/image_codec.h"

namespace millrace::test {
namespace {

int worst_difference(const Image8& a, const Image8& b) {
  if (a.pixels.size() != b.pixels.size()) return 1000;
  int worst = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    worst = std::max(worst, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
  }
  return worst;
}

/// Header and body of a file must agree with `expected` within `tolerance`.
void expect_reads(const fs::path& path, const Image8& expected, int tolerance = 0) {
  const auto size = read_image_size(path);
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(size.value().width, expected.width);
  EXPECT_EQ(size.value().height, expected.height);
  const auto image = read_image(path);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image.value().channels, expected.channels);
  EXPECT_LE(worst_difference(image.value(), expected), tolerance);
}

Image8 gray_as_rgb(const std::vector<uint8_t>& gray, uint32_t width, uint32_t height) {
  Image8 image{width, height, 3, {}};
  for (const uint8_t value : gray) image.pixels.insert(image.pixels.end(), 3, value);
  return image;
}

std::vector<uint8_t> gray_ramp(uint32_t n) {
  std::vector<uint8_t> gray;
  for (uint32_t i = 0; i < n; ++i) gray.push_back(static_cast<uint8_t>(i * 255 / n));
  return gray;
}

TEST(Image, PngOfEveryKindIsRead) {
  TempFolder folder;
  for (const uint32_t channels : {3u, 4u}) {
    write_png(folder / "a.png", gradient_image(13, 9, channels));
    expect_reads(folder / "a.png", gradient_image(13, 9, channels));
  }
  const auto gray = gray_ramp(13 * 9);
  write_png(folder / "gray.png", 13, 9, PNG_FORMAT_GRAY, gray.data());
  expect_reads(folder / "gray.png", gray_as_rgb(gray, 13, 9));
}

TEST(Image, JpegInColourAndGrayIsRead) {
  TempFolder folder;
  write_jpeg(folder / "a.jpg", gradient_image(33, 21));
  expect_reads(folder / "a.jpg", gradient_image(33, 21), 6);
  const auto gray = gray_ramp(33 * 21);
  write_jpeg(folder / "gray.jpg", 33, 21, TJPF_GRAY, gray.data(), TJSAMP_GRAY);
  expect_reads(folder / "gray.jpg", gray_as_rgb(gray, 33, 21), 6);
}

TEST(Image, CmykJpegBecomesRgb) {
  // As libjpeg-turbo stores it, with its Adobe segment: 255 is no ink.
  std::vector<uint8_t> cmyk;
  for (int i = 0; i < 16 * 16; ++i) cmyk.insert(cmyk.end(), {255, 128, 0, 255});
  TempFolder folder;
  write_jpeg(folder / "a.jpg", 16, 16, TJPF_CMYK, cmyk.data());
  const Image8 image = read_image(folder / "a.jpg").or_raise();
  ASSERT_EQ(image.channels, 3u);
  EXPECT_NEAR(image.pixels[0], 255, 4);
  EXPECT_NEAR(image.pixels[1], 128, 4);
  EXPECT_NEAR(image.pixels[2], 0, 4);
}

TEST(Image, ALargeJpegIsDecodedSmallButNeverBelowTheTarget) {
  TempFolder folder;
  write_jpeg(folder / "a.jpg", gradient_image(203, 101));
  const Image8 half = read_image_at_least(folder / "a.jpg", {101, 50}).or_raise();
  EXPECT_EQ(half.width, 102u);
  EXPECT_EQ(half.height, 51u);
  EXPECT_EQ(read_image_at_least(folder / "a.jpg", {103, 50}).or_raise().width, 203u);
  EXPECT_EQ(read_image_at_least(folder / "a.jpg", {20, 10}).or_raise().width, 26u);
  const Image8 small = resize_image(half, 100, 50);
  EXPECT_LE(worst_difference(small, gradient_image(100, 50)), 8);
}

TEST(Image, WebPWithAndWithoutAlphaIsRead) {
  TempFolder folder;
  for (const uint32_t channels : {3u, 4u}) {
    Image8 image = gradient_image(19, 12, channels);
    for (size_t i = 3; channels == 4 && i < image.pixels.size(); i += 4) image.pixels[i] |= 1;
    uint8_t* bytes = nullptr;
    const int stride = static_cast<int>(19 * channels);
    const size_t n = channels == 4
                         ? WebPEncodeLosslessRGBA(image.pixels.data(), 19, 12, stride, &bytes)
                         : WebPEncodeLosslessRGB(image.pixels.data(), 19, 12, stride, &bytes);
    write_bytes(folder / "a.jpg", std::string(reinterpret_cast<char*>(bytes), n));  // the name lies
    WebPFree(bytes);
    expect_reads(folder / "a.jpg", image);
  }
}

TEST(Image, TiffOf8And16BitsIsReadAndItsOrientationIgnored) {
  TempFolder folder;
  const Image8 image = gradient_image(17, 11);
  for (const uint32_t bits : {8u, 16u}) {
    const fs::path path = folder / "a.tif";
    TIFF* tiff = TIFFOpen(path.c_str(), "w");
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 17);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 11);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_BOTRIGHT);
    for (uint32_t row = 0; row < 11; ++row) {
      std::vector<uint16_t> wide;
      for (uint32_t i = 0; i < 51; ++i)
        wide.push_back(static_cast<uint16_t>(image.pixels[row * 51 + i] * 257));
      std::vector<uint8_t> narrow(image.pixels.begin() + row * 51,
                                  image.pixels.begin() + row * 51 + 51);
      TIFFWriteScanline(tiff, bits == 8 ? static_cast<void*>(narrow.data()) : wide.data(), row, 0);
    }
    TIFFClose(tiff);
    expect_reads(path, image, 1);
  }
}

TEST(Image, BmpIsReadFromTheBottomUp) {
  std::string bytes = "BM";
  put<uint32_t>(bytes, 54 + 16), put<uint32_t>(bytes, 0), put<uint32_t>(bytes, 54);
  put<uint32_t>(bytes, 40), put<int32_t>(bytes, 2), put<int32_t>(bytes, 2);
  put<uint16_t>(bytes, 1), put<uint16_t>(bytes, 24);
  for (int i = 0; i < 6; ++i) put<uint32_t>(bytes, 0);
  bytes += std::string("\x03\x02\x01\x06\x05\x04\x00\x00\x09\x08\x07\x0C\x0B\x0A\x00\x00", 16);
  TempFolder folder;
  write_bytes(folder / "a.bmp", bytes);
  expect_reads(folder / "a.bmp", {2, 2, 3, {7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6}});
}

TEST(Image, AbsurdSizesAreRefusedFromTheHeader) {
  TempFolder folder;
  write_png(folder / "a.png", gradient_image(8, 8));
  std::string bytes = read_bytes(folder / "a.png");
  bytes[16] = 0x7F;  // the width's highest byte
  write_bytes(folder / "a.png", bytes);
  EXPECT_NE(read_image_size(folder / "a.png").error().message.find("not usable"),
            std::string::npos);
  EXPECT_FALSE(read_image(folder / "a.png"));
  EXPECT_FALSE(is_sane_size(65500, 65500));
  EXPECT_TRUE(is_sane_size(65500, 16000));
}

TEST(Image, EveryTruncationIsAnErrorOrAWholePictureAndNeverACrash) {
  TempFolder folder;
  write_png(folder / "a.png", gradient_image(24, 24));
  write_jpeg(folder / "a.jpg", gradient_image(24, 24));
  for (const char* name : {"a.png", "a.jpg"}) {
    const std::string whole = read_bytes(folder / name);
    for (size_t n = 0; n + 2 < whole.size(); n += 3) {
      write_bytes(folder / "cut", whole.substr(0, n));
      (void)read_image_size(folder / "cut");
      const auto image = read_image(folder / "cut");
      if (n + 16 < whole.size()) {
        EXPECT_FALSE(image) << name << " cut to " << n;
      }
      if (!image) {
        EXPECT_NE(image.error().message.find("cut"), std::string::npos);
      }
    }
  }
}

TEST(Image, FlippedBytesNeverCrashADecoder) {
  TempFolder folder;
  const Image8 image = gradient_image(24, 24, 4);
  write_png(folder / "a.png", image);
  write_jpeg(folder / "a.jpg", gradient_image(24, 24));
  uint8_t* webp = nullptr;
  const size_t n = WebPEncodeLosslessRGBA(image.pixels.data(), 24, 24, 96, &webp);
  write_bytes(folder / "a.webp", std::string(reinterpret_cast<char*>(webp), n));
  WebPFree(webp);
  uint32_t state = 99;
  const auto next = [&] { return state = state * 1664525u + 1013904223u; };
  for (const char* name : {"a.png", "a.jpg", "a.webp"}) {
    const std::string whole = read_bytes(folder / name);
    for (int i = 0; i < 200; ++i) {
      std::string bytes = whole;
      for (int k = 0; k < 4; ++k)
        bytes[4 + (next() >> 8) % (bytes.size() - 4)] = static_cast<char>(next() >> 24);
      write_bytes(folder / "b", bytes);
      const auto size = read_image_size(folder / "b");
      if (size && uint64_t{size.value().width} * size.value().height > 1u << 22) continue;
      (void)read_image(folder / "b");
    }
  }
}

TEST(Image, ResizingAveragesAreasAndKeepsConstants) {
  Image8 image{4, 2, 3, {}};
  for (const uint8_t v : {0, 100, 200, 40, 20, 80, 100, 60})
    image.pixels.insert(image.pixels.end(), 3, v);
  const Image8 half = resize_image(image, 2, 1);
  EXPECT_EQ(half.pixels, (std::vector<uint8_t>{50, 50, 50, 100, 100, 100}));
  Image8 flat{50, 37, 3, std::vector<uint8_t>(50 * 37 * 3, 201)};
  for (const auto& [w, h] : {std::pair{17u, 11u}, {49u, 36u}, {90u, 70u}, {1u, 1u}}) {
    const Image8 resized = resize_image(flat, w, h);
    EXPECT_EQ(resized.pixels, std::vector<uint8_t>(size_t{3} * w * h, 201)) << w;
  }
}

TEST(Image, TransparentPixelsDoNotBleedIntoAResizedPicture) {
  const Image8 image{2, 1, 4, {200, 100, 50, 255, 0, 255, 0, 0}};
  const Image8 small = resize_image(image, 1, 1);
  EXPECT_EQ(small.pixels, (std::vector<uint8_t>{200, 100, 50, 128}));
}

TEST(Image, AlphaIsCompositedOverTheBackground) {
  TempFolder folder;
  const uint8_t pixels[8] = {200, 100, 0, 255, 200, 100, 0, 51};
  write_png(folder / "a.png", 2, 1, PNG_FORMAT_RGBA, pixels);
  View view;
  view.image_path = folder / "a.png";
  view.file_width = 2, view.file_height = 1;
  view.lens = {LensKind::Pinhole, 2, 1, 2, 2, 1, 0.5, 0, 0, 0, 0};
  view.camera = {2, 1, 2, 2, 1, 0.5, {}};
  const Image8 black = load_view_image(view, {0, 0, 0}).or_raise();
  EXPECT_EQ(black.pixels, (std::vector<uint8_t>{200, 100, 0, 40, 20, 0}));
  const Image8 white = load_view_image(view, {1, 1, 1}).or_raise();
  EXPECT_EQ(white.pixels, (std::vector<uint8_t>{200, 100, 0, 244, 224, 204}));
  view.file_width = 3;
  EXPECT_FALSE(load_view_image(view, {0, 0, 0}));
}

}  // namespace
}  // namespace millrace::test
