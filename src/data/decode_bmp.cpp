// BMP by stb_image.
#include <fmt/format.h>

#include <limits>
#include <memory>

#include "data/image_codec.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#include <stb/stb_image.h>

namespace millrace {
namespace {

struct FreePixels {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};

}  // namespace

Result<Image8> decode_bmp(ImageBytes bytes, const std::filesystem::path& path) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return image_error(path, "a BMP above 2 GiB cannot be read");
  }
  const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  const int n_bytes = static_cast<int>(bytes.size());
  int width = 0, height = 0, channels = 0;
  if (!stbi_info_from_memory(data, n_bytes, &width, &height, &channels) || width <= 0 ||
      height <= 0) {
    return image_error(path, "the BMP header is not valid");
  }
  MILLRACE_TRY(check_image_size(path, static_cast<uint64_t>(width), static_cast<uint64_t>(height)));
  Image8 image{
      static_cast<uint32_t>(width), static_cast<uint32_t>(height), channels == 4 ? 4u : 3u, {}};
  // stb_image fills what a short file lacks with zeros; uncompressed data must be there in full.
  const size_t n_pixels = size_t{image.width} * image.height;
  if (bytes.size() < n_pixels / 8) return image_error(path, "the BMP is cut off");
  const std::unique_ptr<stbi_uc, FreePixels> pixels(stbi_load_from_memory(
      data, n_bytes, &width, &height, &channels, static_cast<int>(image.channels)));
  if (!pixels)
    return image_error(path, fmt::format("the BMP is damaged: {}", stbi_failure_reason()));
  image.pixels.assign(pixels.get(), pixels.get() + n_pixels * image.channels);
  return image;
}

}  // namespace millrace
