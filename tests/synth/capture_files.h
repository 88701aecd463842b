// Helpers for tests of the synthetic capture: temporary folders, all files of a folder, gray PNGs.
#pragma once

#include <gtest/gtest.h>
#include <png.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"

namespace millrace::synth_test {

/// A folder of its own for the running test, empty at first and removed at the end.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name)
      : path_(std::filesystem::path(testing::TempDir()) / ("millrace_synth_" + name)) {
    std::filesystem::remove_all(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Every file below `folder`, by relative path, with its bytes.
inline std::map<std::string, std::vector<std::byte>> all_files(
    const std::filesystem::path& folder) {
  std::map<std::string, std::vector<std::byte>> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    auto bytes = read_file(entry.path());
    if (bytes.ok()) {
      files[std::filesystem::relative(entry.path(), folder).generic_string()] =
          std::move(bytes).value();
    }
  }
  return files;
}

/// A gray PNG of 8 or 16 bits as stored, row-major; empty when it is not one.
struct GrayImage {
  uint32_t width = 0, height = 0, bits = 0;
  std::vector<uint16_t> pixels;
};

inline GrayImage read_gray_png(const std::filesystem::path& path) {
  GrayImage image;
  std::FILE* file = std::fopen(path.string().c_str(), "rb");
  if (file == nullptr) return image;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_read_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY) {
    image.width = png_get_image_width(png, info);
    image.height = png_get_image_height(png, info);
    image.bits = png_get_bit_depth(png, info);
    png_bytepp rows = png_get_rows(png, info);
    for (uint32_t y = 0; y < image.height; ++y) {
      for (uint32_t x = 0; x < image.width; ++x) {
        image.pixels.push_back(image.bits == 16
                                   ? static_cast<uint16_t>(rows[y][2 * x] << 8 | rows[y][2 * x + 1])
                                   : rows[y][x]);
      }
    }
  }
  png_destroy_read_struct(&png, &info, nullptr);
  std::fclose(file);
  return image;
}

}  // namespace millrace::synth_test
