// Conversion between float and 8-bit images, and PNG files.
#include "io/image_write.h"

#include <cmath>

#include "base/file.h"
#include "io/png_codec.h"

namespace millrace {
namespace {

// `value` scaled to 0..`largest` and rounded; NaN becomes 0 (the comparison is false for it).
template <class T>
T quantized(float value, float largest) {
  if (!(value > 0)) return 0;
  return static_cast<T>(std::lround((value < 1 ? value : 1.0f) * largest));
}

}  // namespace

ImageF to_float(const Image8& image) {
  ImageF out{image.width, image.height, {}};
  const size_t n_pixels = static_cast<size_t>(image.width) * image.height;
  out.pixels.resize(n_pixels * 3);
  for (size_t i = 0; i < n_pixels; ++i) {
    const uint8_t* pixel = &image.pixels[i * image.channels];
    const float alpha = image.channels == 4 ? static_cast<float>(pixel[3]) / 255.0f : 1.0f;
    for (size_t c = 0; c < 3; ++c) {
      out.pixels[3 * i + c] = static_cast<float>(pixel[c]) / 255.0f * alpha;
    }
  }
  return out;
}

Image8 to_8bit(const ImageF& image) {
  Image8 out{image.width, image.height, 3, {}};
  out.pixels.reserve(image.pixels.size());
  for (const float value : image.pixels) out.pixels.push_back(quantized<uint8_t>(value, 255.0f));
  return out;
}

Result<void> write_png8(const std::filesystem::path& path, const Image8& image) {
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes,
                  encode_png8(image.width, image.height, image.channels, image.pixels));
  return write_file_atomically(path, bytes);
}

Result<void> write_png16(const std::filesystem::path& path, const ImageF& image) {
  std::vector<uint16_t> samples;
  samples.reserve(image.pixels.size());
  for (const float value : image.pixels) samples.push_back(quantized<uint16_t>(value, 65535.0f));
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes,
                  encode_png16(image.width, image.height, samples));
  return write_file_atomically(path, bytes);
}

}  // namespace millrace
