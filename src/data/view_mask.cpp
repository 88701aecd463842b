// Masks by way of images: one plane in three channels, so that both are resampled by one code.
#include "data/view_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/image_codec.h"
#include "data/mask_finder.h"

namespace millrace {
namespace {

template <class ValueOf>
std::vector<uint8_t> fitted_plane(const Image8& image, const View& view, const ValueOf& value_of) {
  Image8 gray = {image.width, image.height, 3, {}};
  const size_t n = size_t{image.width} * image.height;
  gray.pixels.resize(3 * n);
  for (size_t i = 0; i < n; ++i) {
    std::fill_n(&gray.pixels[3 * i], 3, value_of(&image.pixels[image.channels * i]));
  }
  const Image8 fitted = fit_to_view(std::move(gray), view);
  std::vector<uint8_t> plane(size_t{fitted.width} * fitted.height);
  for (size_t i = 0; i < plane.size(); ++i) plane[i] = fitted.pixels[3 * i];
  return plane;
}

}  // namespace

std::vector<uint8_t> mask_of_alpha(const Image8& image, const View& view) {
  if (image.channels != 4) {
    return std::vector<uint8_t>(size_t{view.camera.width} * view.camera.height, 255);
  }
  return fitted_plane(image, view, [](const uint8_t* pixel) { return pixel[3]; });
}

Result<std::vector<uint8_t>> load_view_mask(const View& view) {
  MILLRACE_ASSIGN(const ImageSize file, read_image_size(view.mask_path));
  if (file.width != view.mask_width || file.height != view.mask_height) {
    return image_error(view.mask_path,
                       fmt::format("the mask is {}x{} now; it was {}x{} when the dataset was read",
                                   file.width, file.height, view.mask_width, view.mask_height));
  }
  MILLRACE_ASSIGN(const Image8 image, read_image(view.mask_path));
  if (image.channels == 4) {
    bool opaque = true;
    for (size_t i = 3; i < image.pixels.size(); i += 4) opaque = opaque && image.pixels[i] == 255;
    if (!opaque) return mask_of_alpha(image, view);
  }
  return fitted_plane(image, view, [](const uint8_t* pixel) {
    return static_cast<uint8_t>((pixel[0] + pixel[1] + pixel[2] + 1) / 3);
  });
}

uint64_t load_mask_bytes(const View& view) {
  if (!has_mask(view)) return 0;
  const uint64_t pixels = view.mask_from_alpha ? uint64_t{view.file_width} * view.file_height
                                               : uint64_t{view.mask_width} * view.mask_height;
  const uint64_t frame = uint64_t{view.camera.width} * view.camera.height;
  const uint64_t lens = uint64_t{view.lens.width} * view.lens.height;
  std::error_code error;
  const uint64_t file = std::filesystem::file_size(view.mask_path, error);
  // Decoded, in three channels, resized, resampled, and the plane.
  return (error ? 0 : file) + (4 + 3) * pixels + 4 * lens + (3 + 1) * frame;
}

}  // namespace millrace
