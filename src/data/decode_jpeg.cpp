// JPEG by libturbojpeg, decoded smaller where that is enough.
#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "data/image_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

struct CloseDecoder {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};

/// Whether an Adobe segment stands before the pixels: such CMYK files store the inks inverted.
bool has_adobe_segment(ImageBytes bytes) {
  size_t at = 2;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  while (at + 9 < bytes.size() && byte(at) == 0xFF && byte(at + 1) != 0xDA) {
    if (byte(at + 1) == 0xFF) {
      ++at;
      continue;
    }
    if (byte(at + 1) == 0xEE) {
      return std::string_view(reinterpret_cast<const char*>(&bytes[at + 4]), 5) == "Adobe";
    }
    at += 2 + std::max<size_t>(2, size_t{byte(at + 2)} << 8 | byte(at + 3));
  }
  return false;
}

/// Whether a warning of the decoder means that part of the picture is missing or noise.
bool is_damage(std::string_view message) {
  return message.find("remature end") != std::string_view::npos ||
         message.find("bad Huffman") != std::string_view::npos ||
         message.find("Invalid SOS") != std::string_view::npos;
}

Image8 rgb_from_cmyk(const Image8& cmyk, bool inverted) {
  Image8 image{cmyk.width, cmyk.height, 3, {}};
  image.pixels.resize(cmyk.pixels.size() / 4 * 3);
  for (size_t i = 0; i < cmyk.pixels.size() / 4; ++i) {
    const auto paper = [&](size_t k) {  // how much light an ink leaves, 0..255
      const uint32_t value = cmyk.pixels[4 * i + k];
      return inverted ? value : 255 - value;
    };
    for (size_t k = 0; k < 3; ++k) {
      image.pixels[3 * i + k] = static_cast<uint8_t>((paper(k) * paper(3) + 127) / 255);
    }
  }
  return image;
}

}  // namespace

Result<Image8> decode_jpeg(ImageBytes bytes, const fs::path& path, ImageSize at_least) {
  const std::unique_ptr<void, CloseDecoder> decoder(tjInitDecompress());
  if (!decoder) return image_error(path, "the JPEG decoder could not be started");
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colors = 0;
  if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling,
                          &colors) != 0 &&
      tjGetErrorCode(decoder.get()) == TJERR_FATAL) {
    return image_error(path, fmt::format("not a valid JPEG: {}", tjGetErrorStr2(decoder.get())));
  }
  MILLRACE_TRY(check_image_size(path, static_cast<uint64_t>(std::max(0, width)),
                                static_cast<uint64_t>(std::max(0, height))));
  // The smallest of 1/8, 1/4 and 1/2 that is still large enough.
  int divisor = 1;
  while (divisor < 8) {
    const tjscalingfactor half = {1, divisor * 2};
    if (TJSCALED(width, half) < static_cast<int>(at_least.width)) break;
    if (TJSCALED(height, half) < static_cast<int>(at_least.height)) break;
    divisor *= 2;
  }
  const tjscalingfactor scale = {1, divisor};
  Image8 image;
  image.width = static_cast<uint32_t>(TJSCALED(width, scale));
  image.height = static_cast<uint32_t>(TJSCALED(height, scale));
  const bool cmyk = colors == TJCS_CMYK || colors == TJCS_YCCK;
  image.channels = cmyk ? 4 : 3;
  image.pixels.resize(size_t{image.width} * image.height * image.channels);
  if (tjDecompress2(decoder.get(), data, bytes.size(), image.pixels.data(),
                    static_cast<int>(image.width), 0, static_cast<int>(image.height),
                    cmyk ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT) != 0) {
    const std::string_view message = tjGetErrorStr2(decoder.get());
    if (tjGetErrorCode(decoder.get()) == TJERR_FATAL || is_damage(message)) {
      return image_error(path, fmt::format("the JPEG is damaged: {}", message));
    }
  }
  return cmyk ? rgb_from_cmyk(image, has_adobe_segment(bytes)) : image;
}

}  // namespace millrace
