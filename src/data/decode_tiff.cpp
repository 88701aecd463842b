// TIFF by libtiff, from memory; the orientation tag is ignored as for every other format.
#include <fmt/format.h>
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "data/image_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

struct Source {
  ImageBytes bytes;
  uint64_t offset = 0;
  std::string error;
};

tmsize_t on_read(thandle_t handle, void* to, tmsize_t n) {
  auto* source = static_cast<Source*>(handle);
  if (n < 0 || source->offset >= source->bytes.size()) return 0;
  const size_t count =
      std::min<size_t>(static_cast<size_t>(n), source->bytes.size() - source->offset);
  std::memcpy(to, source->bytes.data() + source->offset, count);
  source->offset += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t on_write(thandle_t, void*, tmsize_t) { return 0; }

toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  auto* source = static_cast<Source*>(handle);
  if (whence == SEEK_CUR) offset += source->offset;
  if (whence == SEEK_END) offset += source->bytes.size();
  source->offset = offset;
  return offset;
}

int on_close(thandle_t) { return 0; }

toff_t on_size(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }

int on_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  std::array<char, 256> text;
  std::vsnprintf(text.data(), text.size(), format, arguments);
  auto* source = static_cast<Source*>(user);
  if (source->error.empty()) source->error = text.data();
  return 1;
}

int on_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

/// An open TIFF whose messages go to `source`.
class Reader {
 public:
  explicit Reader(Source& source) {
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, &source);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, &source);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(4 * kMaxPixels));
    tiff_ = TIFFClientOpenExt("image", "rm", &source, on_read, on_write, on_seek, on_close, on_size,
                              nullptr, nullptr, options);
    TIFFOpenOptionsFree(options);
  }
  ~Reader() {
    if (tiff_) TIFFClose(tiff_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  TIFF* get() const { return tiff_; }

 private:
  TIFF* tiff_ = nullptr;
};

Result<ImageSize> size_of(const Reader& reader, const Source& source, const fs::path& path) {
  uint32_t width = 0, height = 0;
  if (!reader.get() || TIFFGetField(reader.get(), TIFFTAG_IMAGEWIDTH, &width) != 1 ||
      TIFFGetField(reader.get(), TIFFTAG_IMAGELENGTH, &height) != 1) {
    return image_error(path, fmt::format("the TIFF header is not valid: {}", source.error));
  }
  MILLRACE_TRY(check_image_size(path, width, height));
  return ImageSize{width, height};
}

}  // namespace

Result<ImageSize> tiff_size(ImageBytes bytes, const fs::path& path) {
  Source source{bytes, 0, {}};
  const Reader reader(source);
  return size_of(reader, source, path);
}

Result<Image8> decode_tiff(ImageBytes bytes, const fs::path& path) {
  Source source{bytes, 0, {}};
  const Reader reader(source);
  MILLRACE_ASSIGN(const ImageSize size, size_of(reader, source, path));
  const auto refuse = [&](std::string_view what) {
    return image_error(path, fmt::format("the TIFF cannot be read: {}", what));
  };
  std::array<char, 1024> why = {};
  TIFFRGBAImage rgba;
  if (!TIFFRGBAImageBegin(&rgba, reader.get(), /*stop on error*/ 1, why.data())) {
    return refuse(why.data());
  }
  rgba.orientation = rgba.req_orientation = ORIENTATION_TOPLEFT;
  std::vector<uint32_t> raster(size_t{size.width} * size.height);
  const bool ok = TIFFRGBAImageGet(&rgba, raster.data(), size.width, size.height) != 0;
  const bool has_alpha = rgba.alpha != 0;
  TIFFRGBAImageEnd(&rgba);
  if (!ok) return refuse(source.error.empty() ? "it is damaged" : source.error);

  Image8 image{size.width, size.height, has_alpha ? 4u : 3u, {}};
  image.pixels.resize(raster.size() * image.channels);
  for (size_t i = 0; i < raster.size(); ++i) {
    uint32_t pixel[4] = {TIFFGetR(raster[i]), TIFFGetG(raster[i]), TIFFGetB(raster[i]),
                         TIFFGetA(raster[i])};
    // libtiff hands colours out multiplied by alpha.
    for (int k = 0; has_alpha && k < 3; ++k) {
      pixel[k] = pixel[3] ? std::min(255u, (pixel[k] * 255 + pixel[3] / 2) / pixel[3]) : 0;
    }
    for (uint32_t k = 0; k < image.channels; ++k) {
      image.pixels[i * image.channels + k] = static_cast<uint8_t>(pixel[k]);
    }
  }
  return image;
}

}  // namespace millrace
