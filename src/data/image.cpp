// Reading image files of any supported format, and the training image of a view.
#include "data/image.h"

#include <fmt/format.h>
#include <webp/decode.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/file.h"
#include "data/image_codec.h"
#include "data/undistort.h"
#include "data/view_mask.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

uint32_t big16(const uint8_t* p) { return uint32_t{p[0]} << 8 | p[1]; }
uint32_t big32(const uint8_t* p) { return big16(p) << 16 | big16(p + 2); }
uint32_t little32(const uint8_t* p) { return p[0] | p[1] << 8 | p[2] << 16 | uint32_t{p[3]} << 24; }

/// Walks the segments of a JPEG to its frame header, reading no more than that.
Result<ImageSize> jpeg_size(std::ifstream& file, const fs::path& path) {
  uint64_t at = 2;
  for (;;) {
    uint8_t segment[9] = {};
    file.clear();
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(segment), sizeof(segment));
    if (file.gcount() < 4 || segment[0] != 0xFF) {
      return image_error(path, fmt::format("no JPEG frame header; looked up to byte {}", at));
    }
    const uint8_t marker = segment[1];
    const bool is_fill = marker == 0xFF, has_no_length = marker == 0x01 || (marker & 0xF8) == 0xD0;
    if (is_fill || has_no_length) {
      at += is_fill ? 1 : 2;
      continue;
    }
    const bool is_frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame) {
      if (file.gcount() < 9) return image_error(path, "the JPEG frame header is cut off");
      return ImageSize{big16(segment + 7), big16(segment + 5)};
    }
    if (marker == 0xDA || marker == 0xD9) return image_error(path, "a JPEG without a frame header");
    at += 2 + std::max(2u, big16(segment + 2));
  }
}

Result<Image8> decode(const fs::path& path, ImageSize at_least) {
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  if (bytes.empty()) return image_error(path, "the file is empty (0 bytes)");
  switch (sniff_image_format(bytes)) {
    case ImageFormat::Jpeg:
      return decode_jpeg(bytes, path, at_least);
    case ImageFormat::Png:
      return decode_png(bytes, path);
    case ImageFormat::WebP:
      return decode_webp(bytes, path);
    case ImageFormat::Tiff:
      return decode_tiff(bytes, path);
    case ImageFormat::Bmp:
      return decode_bmp(bytes, path);
    case ImageFormat::Unknown:
      break;
  }
  return image_error(path, "not a JPEG, PNG, WebP, TIFF or BMP image");
}

/// RGB of `image` in front of `background`.
Image8 composite(Image8 image, const std::array<float, 3>& background) {
  if (image.channels == 3) return image;
  const size_t n = size_t{image.width} * image.height;
  for (size_t i = 0; i < n; ++i) {
    const uint8_t* from = &image.pixels[4 * i];
    const float alpha = static_cast<float>(from[3]) / 255.0f;
    for (size_t k = 0; k < 3; ++k) {
      const float value =
          alpha * from[k] + (1 - alpha) * 255.0f * std::clamp(background[k], 0.0f, 1.0f);
      image.pixels[3 * i + k] = static_cast<uint8_t>(value + 0.5f);
    }
  }
  image.pixels.resize(3 * n);
  image.channels = 3;
  return image;
}

bool has_jpeg_name(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return extension == ".jpg" || extension == ".jpeg";
}

/// The pixels of `camera` from an RGB image seen through `lens`, by bilinear interpolation.
Image8 resample(const Image8& image, const Lens& lens, const Camera& camera) {
  Image8 result{camera.width, camera.height, 3, {}};
  result.pixels.resize(size_t{3} * camera.width * camera.height);
  const float right = static_cast<float>(image.width - 1),
              bottom = static_cast<float>(image.height - 1);
  uint8_t* to = result.pixels.data();
  const double inv_fx = 1 / camera.fx;
  for (uint32_t row = 0; row < camera.height; ++row) {
    const double y = (row + 0.5 - camera.cy) / camera.fy;
    for (uint32_t column = 0; column < camera.width; ++column, to += 3) {
      const auto at = distort(lens, (column + 0.5 - camera.cx) * inv_fx, y);
      const float u = std::clamp(static_cast<float>(lens.fx * at[0] + lens.cx - 0.5), 0.0f, right);
      const float v = std::clamp(static_cast<float>(lens.fy * at[1] + lens.cy - 0.5), 0.0f, bottom);
      const uint32_t x0 = static_cast<uint32_t>(u), y0 = static_cast<uint32_t>(v);
      const size_t x1 = std::min(x0 + 1, image.width - 1), y1 = std::min(y0 + 1, image.height - 1);
      const float s = u - static_cast<float>(x0), t = v - static_cast<float>(y0);
      const uint8_t* a = &image.pixels[3 * (size_t{y0} * image.width + x0)];
      const uint8_t* b = &image.pixels[3 * (size_t{y0} * image.width + x1)];
      const uint8_t* c = &image.pixels[3 * (y1 * image.width + x0)];
      const uint8_t* d = &image.pixels[3 * (y1 * image.width + x1)];
      for (int k = 0; k < 3; ++k) {
        const float value = (1 - t) * ((1 - s) * a[k] + s * b[k]) + t * ((1 - s) * c[k] + s * d[k]);
        to[k] = static_cast<uint8_t>(value + 0.5f);
      }
    }
  }
  return result;
}

}  // namespace

Error image_error(const fs::path& path, std::string_view what) {
  return {ErrorCode::Dataset, fmt::format("{}: {}", path.string(), what)};
}

Result<void> check_image_size(const fs::path& path, uint64_t width, uint64_t height) {
  if (is_sane_size(width, height)) return {};
  return image_error(path,
                     fmt::format("a size of {}x{} pixels is not usable (sides 1 to {}, at most {} "
                                 "pixels)",
                                 width, height, kMaxSide, kMaxPixels));
}

ImageFormat sniff_image_format(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("\xFF\xD8\xFF")) return ImageFormat::Jpeg;
  if (text.starts_with("\x89PNG\r\n\x1A\n")) return ImageFormat::Png;
  if (text.starts_with("RIFF") && text.size() >= 12 && text.substr(8, 4) == "WEBP") {
    return ImageFormat::WebP;
  }
  const std::string_view four = text.substr(0, 4);
  if (four == std::string_view("II*\0", 4) || four == std::string_view("MM\0*", 4) ||
      four == std::string_view("II+\0", 4) || four == std::string_view("MM\0+", 4)) {
    return ImageFormat::Tiff;
  }
  if (text.starts_with("BM")) return ImageFormat::Bmp;
  return ImageFormat::Unknown;
}

Result<ImageSize> read_image_size(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<uint8_t, 64> head = {};
  if (file) file.read(reinterpret_cast<char*>(head.data()), head.size());
  if (!file && !file.eof()) return image_error(path, "cannot be opened or read");
  const size_t n = static_cast<size_t>(file.gcount());
  if (n == 0) return image_error(path, "the file is empty (0 bytes)");
  ImageSize size;
  switch (sniff_image_format(std::as_bytes(std::span(head.data(), n)))) {
    case ImageFormat::Jpeg: {
      MILLRACE_ASSIGN(size, jpeg_size(file, path));
      break;
    }
    case ImageFormat::Png:
      if (n < 24) return image_error(path, "the PNG header is cut off");
      size = {big32(&head[16]), big32(&head[20])};
      break;
    case ImageFormat::WebP: {
      WebPBitstreamFeatures features;
      if (WebPGetFeatures(head.data(), n, &features) != VP8_STATUS_OK) {
        return image_error(path, "the WebP header is not valid");
      }
      size = {static_cast<uint32_t>(features.width), static_cast<uint32_t>(features.height)};
      break;
    }
    case ImageFormat::Tiff: {
      MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
      MILLRACE_ASSIGN(size, tiff_size(bytes, path));
      break;
    }
    case ImageFormat::Bmp: {
      if (n < 30) return image_error(path, "the BMP header is cut off");
      if (little32(&head[14]) == 12) {
        size = {little32(&head[18]) & 0xFFFF, little32(&head[18]) >> 16};
        break;
      }
      const int64_t height =
          static_cast<int32_t>(little32(&head[22]));  // negative: stored top down
      size = {little32(&head[18]), static_cast<uint32_t>(std::abs(height))};
      break;
    }
    case ImageFormat::Unknown:
      return image_error(path, "not a JPEG, PNG, WebP, TIFF or BMP image");
  }
  MILLRACE_TRY(check_image_size(path, size.width, size.height));
  return size;
}

Result<Image8> read_image(const fs::path& path) {
  return decode(path, {static_cast<uint32_t>(kMaxSide), static_cast<uint32_t>(kMaxSide)});
}

Result<Image8> read_image_at_least(const fs::path& path, ImageSize at_least) {
  return decode(path, at_least);
}

Result<Image8> load_view_image(const View& view, const std::array<float, 3>& background) {
  MILLRACE_ASSIGN(const ImageSize file, read_image_size(view.image_path));
  if (file.width != view.file_width || file.height != view.file_height) {
    return image_error(view.image_path,
                       fmt::format("the image is {}x{} now; it was {}x{} when the dataset was read",
                                   file.width, file.height, view.file_width, view.file_height));
  }
  const Lens& lens = view.lens;
  MILLRACE_ASSIGN(Image8 image, read_image_at_least(view.image_path, {lens.width, lens.height}));
  std::vector<uint8_t> mask;
  if (view.mask_from_alpha) mask = mask_of_alpha(image, view);
  image = fit_to_view(composite(std::move(image), background), view);
  if (!view.mask_path.empty()) {
    MILLRACE_ASSIGN(mask, load_view_mask(view));
  }
  image.mask = std::move(mask);
  return image;
}

Image8 fit_to_view(Image8 image, const View& view) {
  const Lens& lens = view.lens;
  if (image.width != lens.width || image.height != lens.height) {
    image = resize_image(image, lens.width, lens.height);
  }
  if (lens.kind == LensKind::OpenCv) return resample(image, lens, view.camera);
  return image;
}

bool image_has_alpha(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<uint8_t, 64> head = {};
  if (file) file.read(reinterpret_cast<char*>(head.data()), head.size());
  const size_t n = static_cast<size_t>(file.gcount());
  switch (sniff_image_format(std::as_bytes(std::span(head.data(), n)))) {
    case ImageFormat::Png:
      return n > 25 && (head[25] == 4 || head[25] == 6);  // gray or RGB, with alpha
    case ImageFormat::WebP: {
      WebPBitstreamFeatures features;
      return WebPGetFeatures(head.data(), n, &features) == VP8_STATUS_OK && features.has_alpha;
    }
    default:
      return false;
  }
}

uint64_t load_view_bytes(const View& view) {
  // A JPEG is decoded at less than twice the lens's sides where its file is larger.
  std::error_code error;
  const uint64_t file_bytes = fs::file_size(view.image_path, error);
  const uint64_t file_pixels = uint64_t{view.file_width} * view.file_height;
  const uint64_t lens_pixels = uint64_t{view.lens.width} * view.lens.height;
  const bool is_jpeg = has_jpeg_name(view.image_path);
  const uint64_t decoded = is_jpeg ? std::min(file_pixels, 4 * lens_pixels) : file_pixels;
  const bool resizes = file_pixels != lens_pixels, resamples = view.lens.kind == LensKind::OpenCv;
  const uint64_t frame = uint64_t{3} * view.camera.width * view.camera.height;
  const uint64_t channels = is_jpeg ? 3 : 4;
  return (error ? 0 : file_bytes) + channels * decoded + (resizes ? 4 * lens_pixels : 0) +
         (resamples ? frame : 0) + load_mask_bytes(view);
}

}  // namespace millrace
