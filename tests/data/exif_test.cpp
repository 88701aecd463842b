// EXIF exposure of JPEG and TIFF files, in both byte orders, and of damaged ones.
#include "data/exif.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {
namespace {

/// A TIFF structure with 1/60 s at f/4 and ISO 400 in its EXIF folder.
std::vector<std::byte> tiff(bool big_endian, uint32_t iso = 400) {
  std::vector<std::byte> out;
  const auto put = [&](uint32_t value, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; ++i) {
      const size_t shift = 8 * (big_endian ? n_bytes - 1 - i : i);
      out.push_back(static_cast<std::byte>(value >> shift & 0xFF));
    }
  };
  const auto entry = [&](uint32_t tag, uint32_t type, uint32_t value, size_t n_bytes) {
    put(tag, 2);
    put(type, 2);
    put(1, 4);
    put(value, n_bytes);
    put(0, 4 - n_bytes);
  };
  out.assign(2, big_endian ? std::byte{'M'} : std::byte{'I'});
  put(42, 2);
  put(8, 4);
  put(1, 2);  // at 8
  entry(0x8769, 4, 26, 4);
  put(0, 4);
  put(3, 2);  // at 26
  entry(0x829A, 5, 68, 4);
  entry(0x829D, 5, 76, 4);
  entry(0x8827, 3, iso, 2);
  put(0, 4);
  for (const uint32_t value : {1u, 60u, 40u, 10u}) put(value, 4);  // at 68
  return out;
}

std::vector<std::byte> jpeg(const std::vector<std::byte>& exif) {
  std::vector<std::byte> out;
  for (const int b : {0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xE1}) out.push_back(std::byte(b));
  const size_t length = exif.size() + 8;
  out.push_back(static_cast<std::byte>(length >> 8));
  out.push_back(static_cast<std::byte>(length & 0xFF));
  for (const char c : std::string("Exif\0\0", 6)) out.push_back(static_cast<std::byte>(c));
  out.insert(out.end(), exif.begin(), exif.end());
  for (const int b : {0xFF, 0xDA, 0, 0, 0, 0, 0, 0, 0, 0}) out.push_back(std::byte(b));
  return out;
}

// log2(1/60 x 400 / (100 x 16))
constexpr double kExpected = -7.906890595608519;

TEST(Exif, ExposureOfJpegAndTiffInBothByteOrders) {
  for (const bool big_endian : {false, true}) {
    EXPECT_NEAR(exposure_value(tiff(big_endian)).value_or(0), kExpected, 1e-12);
    EXPECT_NEAR(exposure_value(jpeg(tiff(big_endian))).value_or(0), kExpected, 1e-12);
  }
}

TEST(Exif, AFigureThatMakesNoSenseIsNone) {
  EXPECT_FALSE(exposure_value(tiff(false, 0)).has_value());
  EXPECT_FALSE(exposure_value({}).has_value());
  EXPECT_FALSE(read_exposure_value("no/such/file.jpg").has_value());
}

TEST(Exif, DamageAtAnyByteIsNeverReadBeyondTheEnd) {
  const std::vector<std::byte> whole = jpeg(tiff(true));
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<int64_t>(n));
    exposure_value(cut);
    std::vector<std::byte> spoilt = whole;
    spoilt[n] = std::byte{0xFF};
    exposure_value(spoilt);
  }
  const std::vector<std::byte> headless(whole.begin(), whole.begin() + 30);
  EXPECT_FALSE(exposure_value(headless).has_value());
}

}  // namespace
}  // namespace millrace
