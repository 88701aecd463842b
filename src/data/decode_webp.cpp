// WebP by libwebp.
#include <webp/decode.h>

#include "data/image_codec.h"

namespace millrace {

Result<Image8> decode_webp(ImageBytes bytes, const std::filesystem::path& path) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    return image_error(path, "the WebP header is not valid");
  }
  if (features.has_animation) return image_error(path, "an animated WebP is no photograph");
  MILLRACE_TRY(check_image_size(path, static_cast<uint64_t>(features.width),
                                static_cast<uint64_t>(features.height)));
  Image8 image;
  image.width = static_cast<uint32_t>(features.width);
  image.height = static_cast<uint32_t>(features.height);
  image.channels = features.has_alpha ? 4 : 3;
  const int stride = static_cast<int>(image.width * image.channels);
  image.pixels.resize(static_cast<size_t>(stride) * image.height);
  const auto* done =
      features.has_alpha
          ? WebPDecodeRGBAInto(data, bytes.size(), image.pixels.data(), image.pixels.size(), stride)
          : WebPDecodeRGBInto(data, bytes.size(), image.pixels.data(), image.pixels.size(), stride);
  if (!done) return image_error(path, "the WebP is damaged");
  return image;
}

}  // namespace millrace
