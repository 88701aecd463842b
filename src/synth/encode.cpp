// JPEG through libjpeg-turbo and PNG through libpng, into memory.
#include "synth/encode.h"

#include <png.h>
#include <turbojpeg.h>

#include <memory>

namespace millrace::synth {

namespace {

void append_bytes(png_structp png, png_bytep data, png_size_t size) {
  auto& out = *static_cast<std::vector<std::byte>*>(png_get_io_ptr(png));
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

// libpng reports errors by longjmp, so this function owns nothing that a destructor would have to
// free.
bool write_png(const uint8_t* pixels, size_t row_bytes, uint32_t width, uint32_t height,
               int bit_depth, int color_type, std::vector<std::byte>* out) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  if (png == nullptr) return false;
  png_infop info = png_create_info_struct(png);
  if (info == nullptr || setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_write_struct(&png, &info);
    return false;
  }
  png_set_write_fn(png, out, append_bytes, nullptr);
  png_set_IHDR(png, info, width, height, bit_depth, color_type, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(png, 4);
  png_write_info(png, info);
  for (uint32_t row = 0; row < height; ++row) {
    png_write_row(png, const_cast<png_bytep>(pixels + row * row_bytes));  // libpng only reads it
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return true;
}

}  // namespace

Result<std::vector<std::byte>> encode_jpeg(std::span<const uint8_t> rgb, uint32_t width,
                                           uint32_t height) {
  struct Closer {
    void operator()(void* handle) const { tjDestroy(handle); }
  };
  const std::unique_ptr<void, Closer> encoder(tjInitCompress());
  unsigned char* data = nullptr;
  unsigned long size = 0;
  const bool done =
      encoder != nullptr &&
      tjCompress2(encoder.get(), rgb.data(), static_cast<int>(width), 0, static_cast<int>(height),
                  TJPF_RGB, &data, &size, TJSAMP_444, 95, TJFLAG_ACCURATEDCT) == 0;
  std::vector<std::byte> out;
  if (done) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    out.assign(bytes, bytes + size);
  }
  tjFree(data);
  if (!done) return Error{ErrorCode::Output, "libjpeg-turbo could not encode a photograph"};
  return out;
}

Result<std::vector<std::byte>> encode_png8(std::span<const uint8_t> pixels, uint32_t width,
                                           uint32_t height, uint32_t channels) {
  std::vector<std::byte> out;
  const int color_type = channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY;
  if (!write_png(pixels.data(), static_cast<size_t>(width) * channels, width, height, 8, color_type,
                 &out)) {
    return Error{ErrorCode::Output, "libpng could not encode an 8-bit image"};
  }
  return out;
}

Result<std::vector<std::byte>> encode_png16(std::span<const uint16_t> pixels, uint32_t width,
                                            uint32_t height) {
  std::vector<uint8_t> big_endian(2 * pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) {
    big_endian[2 * i] = static_cast<uint8_t>(pixels[i] >> 8);
    big_endian[2 * i + 1] = static_cast<uint8_t>(pixels[i] & 255);
  }
  std::vector<std::byte> out;
  if (!write_png(big_endian.data(), 2 * static_cast<size_t>(width), width, height, 16,
                 PNG_COLOR_TYPE_GRAY, &out)) {
    return Error{ErrorCode::Output, "libpng could not encode a 16-bit image"};
  }
  return out;
}

}  // namespace millrace::synth
