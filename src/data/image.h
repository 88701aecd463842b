// Image files in, 8-bit pixels out; and the geometry between the file and the training image.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace millrace {

/// Interleaved pixels, row-major from the top left: [height, width, channels], channels 3 or 4.
struct Image8 {
  uint32_t width = 0, height = 0, channels = 3;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> mask = {};  // [height, width], of a view that has one; else empty
  uint64_t bytes() const { return pixels.size() + mask.size(); }
};

struct ImageSize {
  uint32_t width = 0, height = 0;
};

/// Size of an image file from its header, EXIF rotation ignored as COLMAP does.
/// Formats: JPEG, PNG, WebP, TIFF, BMP. The content decides, not the extension.
Result<ImageSize> read_image_size(const std::filesystem::path& path);

/// Decodes a file to 8-bit RGB, or RGBA where the file has alpha (gray, palette, CMYK and 16-bit
/// converted).
Result<Image8> read_image(const std::filesystem::path& path);

/// Whether the file's header tells of an alpha channel (PNG, WebP); false if it cannot be read.
bool image_has_alpha(const std::filesystem::path& path);

/// Area average of `image` to `width` x `height` (both not larger than the image's), or bilinear
/// where larger.
Image8 resize_image(const Image8& image, uint32_t width, uint32_t height);

/// The photograph of `view` as trained: decoded, resized to the lens's size, undistorted, cropped,
/// and, where it has alpha, composited over `background` (each 0..1). Always RGB, of view.camera's
/// size; with its mask if the view has one. Errors: Dataset, naming the file.
Result<Image8> load_view_image(const View& view, const std::array<float, 3>& background);

/// `image`, RGB, as the view is trained: resized to the lens's size, undistorted and cropped.
Image8 fit_to_view(Image8 image, const View& view);

/// Host memory that load_view_image() takes while it runs, the image that it returns included: at
/// most, whatever the file's format.
uint64_t load_view_bytes(const View& view);

}  // namespace millrace
