// Reading image files as floats.
#include "io/image_read_float.h"

#include "base/file.h"
#include "io/png_codec.h"

namespace millrace {

Result<ImageF> read_image_float(const std::filesystem::path& path) {
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  if (!is_png16(bytes)) {
    MILLRACE_ASSIGN(const Image8 image, read_image(path));
    return to_float(image);
  }
  MILLRACE_ASSIGN(const Image16 image, decode_png16(bytes, path.string()));
  ImageF out{image.width, image.height, {}};
  const size_t n_pixels = image.pixels.size() / 4;
  out.pixels.resize(n_pixels * 3);
  for (size_t i = 0; i < n_pixels; ++i) {
    const float alpha = static_cast<float>(image.pixels[4 * i + 3]) / 65535.0f;
    for (size_t c = 0; c < 3; ++c) {
      out.pixels[3 * i + c] = static_cast<float>(image.pixels[4 * i + c]) / 65535.0f * alpha;
    }
  }
  return out;
}

}  // namespace millrace
