// PNG encoding and decoding through libpng.
#include "io/png_codec.h"

#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>

namespace millrace {
namespace {

// Renders are written often and read seldom, so speed counts for more than size.
constexpr int kCompressionLevel = 3;
// Deflate cannot shrink more than about 1032 times; a header that claims more is lying.
constexpr uint64_t kMaxDeflateRatio = 1100;

// What libpng's callbacks share with the caller. Errors leave libpng by longjmp, so functions that
// call setjmp below own no C++ object with a destructor.
struct PngState {
  std::string message;
  std::vector<std::byte> written;
  std::span<const std::byte> unread;
};

void on_error(png_structp png, png_const_charp message) {
  static_cast<PngState*>(png_get_error_ptr(png))->message = message;
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_write(png_structp png, png_bytep data, size_t n_bytes) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  state->written.insert(state->written.end(), bytes, bytes + n_bytes);
}

void on_flush(png_structp) {}

void on_read(png_structp png, png_bytep data, size_t n_bytes) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (n_bytes > state->unread.size()) png_error(png, "the file is cut off");
  std::memcpy(data, state->unread.data(), n_bytes);
  state->unread = state->unread.subspan(n_bytes);
}

struct EncodeJob {
  uint32_t width, height, channels;
  int bit_depth;
  const uint8_t* samples;  // 16-bit samples in native order
};

bool encode_guarded(png_structp png, png_infop info, const EncodeJob& job) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_compression_level(png, kCompressionLevel);
  png_set_IHDR(png, info, job.width, job.height, job.bit_depth,
               job.channels == 4 ? PNG_COLOR_TYPE_RGBA : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (job.bit_depth == 16) png_set_swap(png);
  const size_t row_bytes = static_cast<size_t>(job.width) * job.channels * (job.bit_depth / 8);
  for (uint32_t y = 0; y < job.height; ++y) png_write_row(png, job.samples + y * row_bytes);
  png_write_end(png, nullptr);
  return true;
}

Result<std::vector<std::byte>> encode(const EncodeJob& job) {
  PngState state;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  bool ok = false;
  if (info != nullptr) {
    png_set_write_fn(png, &state, on_write, on_flush);
    ok = encode_guarded(png, info, job);
  }
  png_destroy_write_struct(&png, &info);
  if (!ok) {
    return Error{ErrorCode::Internal, fmt::format("cannot encode a {} x {} PNG: {}", job.width,
                                                  job.height, state.message)};
  }
  return std::move(state.written);
}

bool read_header_guarded(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  return true;
}

bool read_pixels_guarded(png_structp png, png_infop info, png_bytep* rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  const int color = png_get_color_type(png, info);
  if ((color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
  if (png_get_valid(png, info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
  png_set_add_alpha(png, 0xFFFF, PNG_FILLER_AFTER);
  png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  png_read_image(png, rows);
  return true;
}

bool decode(png_structp png, png_infop info, uint64_t file_bytes, PngState& state, Image16& image) {
  if (!read_header_guarded(png, info)) return false;
  image.width = png_get_image_width(png, info);
  image.height = png_get_image_height(png, info);
  const uint64_t n_pixels = static_cast<uint64_t>(image.width) * image.height;
  if (png_get_bit_depth(png, info) != 16 || n_pixels * 2 > file_bytes * kMaxDeflateRatio) {
    state.message = fmt::format("{} bytes cannot hold its {} x {} pixels", file_bytes, image.width,
                                image.height);
    return false;
  }
  image.pixels.resize(static_cast<size_t>(n_pixels) * 4);
  std::vector<png_bytep> rows(image.height);
  for (size_t y = 0; y < rows.size(); ++y) {
    rows[y] = reinterpret_cast<png_bytep>(image.pixels.data() + y * image.width * 4);
  }
  return read_pixels_guarded(png, info, rows.data());
}

}  // namespace

Result<std::vector<std::byte>> encode_png8(uint32_t width, uint32_t height, uint32_t channels,
                                           std::span<const uint8_t> samples) {
  if ((channels != 3 && channels != 4) ||
      samples.size() != static_cast<uint64_t>(width) * height * channels) {
    return Error{
        ErrorCode::Internal,
        fmt::format("cannot encode a PNG: {} samples are not {} x {} pixels of {} channels",
                    samples.size(), width, height, channels)};
  }
  return encode({width, height, channels, 8, samples.data()});
}

Result<std::vector<std::byte>> encode_png16(uint32_t width, uint32_t height,
                                            std::span<const uint16_t> samples) {
  if (samples.size() != static_cast<uint64_t>(width) * height * 3) {
    return Error{ErrorCode::Internal,
                 fmt::format("cannot encode a PNG: {} samples are not {} x {} pixels of 3 channels",
                             samples.size(), width, height)};
  }
  return encode({width, height, 3, 16, reinterpret_cast<const uint8_t*>(samples.data())});
}

bool is_png16(std::span<const std::byte> bytes) {
  constexpr size_t kBitDepthAt = 24;  // signature 8, chunk length and type 8, width and height 8
  return bytes.size() > kBitDepthAt &&
         png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, 8) == 0 &&
         bytes[kBitDepthAt] == std::byte{16};
}

Result<Image16> decode_png16(std::span<const std::byte> bytes, const std::string& file) {
  PngState state;
  state.unread = bytes;
  Image16 image;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  bool ok = false;
  if (info != nullptr) {
    png_set_read_fn(png, &state, on_read);
    ok = decode(png, info, bytes.size(), state, image);
  }
  png_destroy_read_struct(&png, &info, nullptr);
  if (!ok) {
    return Error{ErrorCode::Dataset,
                 fmt::format("cannot decode {}: {} (at byte {} of {})", file, state.message,
                             bytes.size() - state.unread.size(), bytes.size())};
  }
  return image;
}

}  // namespace millrace
