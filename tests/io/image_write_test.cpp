// Tests of io/image_write.cpp and io/png_codec.cpp, with io/image_read_float.cpp as the reader.
#include "io/image_write.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/file.h"
#include "io/image_read_float.h"
#include "io/png_codec.h"
#include "random_image.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

TEST(ImageWrite, EightBitValuesAreRoundedClampedAndNanBecomesBlack) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ImageF image{2, 1, {nan, -1.0f, 2.0f, 0.5f, 100.4f / 255, 100.6f / 255}};
  EXPECT_EQ(to_8bit(image).pixels, (std::vector<uint8_t>{0, 0, 255, 128, 100, 101}));
}

TEST(ImageWrite, EightBitToFloatAndBackIsExact) {
  Image8 image{16, 16, 3, {}};
  for (int i = 0; i < 16 * 16 * 3; ++i) image.pixels.push_back(static_cast<uint8_t>(i));
  EXPECT_EQ(to_8bit(to_float(image)).pixels, image.pixels);
}

TEST(ImageWrite, AlphaIsCompositedOverBlack) {
  const Image8 image{1, 1, 4, {255, 102, 0, 51}};
  const ImageF out = to_float(image);
  EXPECT_NEAR(out.pixels[0], 0.2, 1e-6);
  EXPECT_NEAR(out.pixels[1], 0.08, 1e-6);
  EXPECT_EQ(out.pixels[2], 0);
}

TEST(ImageWrite, EightBitPngRoundTripIsExact) {
  const TemporaryFolder folder;
  for (const uint32_t channels : {3u, 4u}) {
    Image8 image{17, 9, channels, {}};
    for (uint32_t i = 0; i < 17 * 9 * channels; ++i) {
      image.pixels.push_back(static_cast<uint8_t>(i * 37));
    }
    ASSERT_TRUE(write_png8(folder / "new/a.png", image).ok());
    const Result<Image8> read = read_image(folder / "new/a.png");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read.value().channels, channels);
    EXPECT_EQ(read.value().pixels, image.pixels);
  }
}

TEST(ImageWrite, SixteenBitPngKeepsSixteenBits) {
  const TemporaryFolder folder;
  const ImageF image = noise_image(37, 21, 1);
  ASSERT_TRUE(write_png16(folder / "a.png", image).ok());
  const Result<ImageF> read = read_image_float(folder / "a.png");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().pixels.size(), image.pixels.size());
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    EXPECT_NEAR(read.value().pixels[i], image.pixels[i], 0.51 / 65535);
  }
}

TEST(ImageWrite, EightBitFilesAreReadAsFloatsToo) {
  const TemporaryFolder folder;
  const Image8 image{2, 1, 3, {0, 51, 102, 153, 204, 255}};
  ASSERT_TRUE(write_png8(folder / "a.png", image).ok());
  const Result<ImageF> read = read_image_float(folder / "a.png");
  ASSERT_TRUE(read.ok()) << read.error().message;
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(read.value().pixels[i], 0.2 * i, 1e-6);
}

TEST(ImageWrite, SixteenBitGrayIsExpandedToRgb) {
  const TemporaryFolder folder;
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = 3;
  png.height = 1;
  png.format = PNG_FORMAT_LINEAR_Y;
  const std::vector<uint16_t> samples = {0, 1234, 65535};
  ASSERT_NE(
      0, png_image_write_to_file(&png, (folder / "g.png").c_str(), 0, samples.data(), 0, nullptr));
  const Result<ImageF> read = read_image_float(folder / "g.png");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().pixels.size(), 9u);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(read.value().pixels[i], samples[i / 3] / 65535.0, 1e-7);
  }
}

TEST(ImageWrite, EveryTruncationOfASixteenBitPngIsAnErrorNamingTheFile) {
  const std::vector<std::byte> bytes =
      encode_png16(2, 2, std::vector<uint16_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).value();
  ASSERT_TRUE(is_png16(bytes));
  // The end chunk's checksum (the last bytes) is not needed for the pixels.
  for (size_t length = 25; length + 12 < bytes.size(); ++length) {
    const auto image = decode_png16(std::span(bytes).first(length), "x.png");
    ASSERT_FALSE(image.ok()) << length;
    EXPECT_EQ(image.error().code, ErrorCode::Dataset);
    EXPECT_NE(image.error().message.find("x.png"), std::string::npos);
  }
}

TEST(ImageWrite, FlippedBytesOfASixteenBitPngNeverCrash) {
  std::vector<uint16_t> samples(3 * 8 * 8);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<uint16_t>(i * 331);
  const std::vector<std::byte> bytes = encode_png16(8, 8, samples).value();
  for (size_t i = 8; i < bytes.size(); ++i) {
    std::vector<std::byte> garbled = bytes;
    garbled[i] ^= std::byte{0x55};
    if (is_png16(garbled)) (void)decode_png16(garbled, "x.png");
  }
}

TEST(ImageWrite, PixelsThatDoNotFillTheImageAreRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_png8(folder / "a.png", {4, 4, 3, {1, 2, 3}}).error().code, ErrorCode::Internal);
  EXPECT_EQ(write_png16(folder / "a.png", {4, 4, {1, 2, 3}}).error().code, ErrorCode::Internal);
  EXPECT_EQ(write_png8(folder / "a.png", {0, 0, 3, {}}).error().code, ErrorCode::Internal);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.png"));
}

}  // namespace
}  // namespace millrace
