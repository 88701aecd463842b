// The image decoders behind read_image(): one file of this folder per format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"
#include "data/image.h"

namespace millrace {

/// Limits of an image; larger ones are refused before anything is allocated.
constexpr uint64_t kMaxSide = 65500;
constexpr uint64_t kMaxPixels = 1ull << 30;
constexpr bool is_sane_size(uint64_t width, uint64_t height) {
  return width >= 1 && height >= 1 && width <= kMaxSide && height <= kMaxSide &&
         width * height <= kMaxPixels;
}

enum class ImageFormat : uint8_t { Unknown, Jpeg, Png, WebP, Tiff, Bmp };

/// The format that the first bytes (at least 12) announce.
ImageFormat sniff_image_format(std::span<const std::byte> head);

/// "PATH: what", as ErrorCode::Dataset.
Error image_error(const std::filesystem::path& path, std::string_view what);
/// An error if no image may have this size.
Result<void> check_image_size(const std::filesystem::path& path, uint64_t width, uint64_t height);

/// As read_image, but a JPEG may come back smaller: at the smallest size its transform can be
/// decoded to that is not below `at_least` on either side.
Result<Image8> read_image_at_least(const std::filesystem::path& path, ImageSize at_least);

using ImageBytes = std::span<const std::byte>;
Result<Image8> decode_jpeg(ImageBytes bytes, const std::filesystem::path& path, ImageSize at_least);
Result<Image8> decode_png(ImageBytes bytes, const std::filesystem::path& path);
Result<Image8> decode_webp(ImageBytes bytes, const std::filesystem::path& path);
Result<Image8> decode_tiff(ImageBytes bytes, const std::filesystem::path& path);
Result<Image8> decode_bmp(ImageBytes bytes, const std::filesystem::path& path);
Result<ImageSize> tiff_size(ImageBytes bytes, const std::filesystem::path& path);

}  // namespace millrace
