// PNG by libpng: any colour type and depth to 8-bit RGB or RGBA; gamma chunks are ignored.
#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "data/image_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// What libpng's callbacks work on. It outlives every jump, so no destructor is ever jumped over.
struct Job {
  ImageBytes bytes;
  size_t offset = 0;
  std::string error;
  Image8 image;
  std::vector<png_bytep> rows;
  bool size_refused = false;
  uint64_t width = 0, height = 0;
};

void on_error(png_structp png, png_const_charp message) {
  static_cast<Job*>(png_get_error_ptr(png))->error = message;
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, png_size_t n) {
  Job* job = static_cast<Job*>(png_get_io_ptr(png));
  if (n > job->bytes.size() - job->offset) png_error(png, "the file ends early");
  std::memcpy(to, job->bytes.data() + job->offset, n);
  job->offset += n;
}

/// Fills job.image, or job.error. Holds no object with a destructor: libpng leaves it by longjmp.
void run(Job& job, png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png)) != 0) return;
  png_set_read_fn(png, &job, on_read);
  png_read_info(png, info);
  job.width = png_get_image_width(png, info);
  job.height = png_get_image_height(png, info);
  if (!is_sane_size(job.width, job.height)) {
    job.size_refused = true;
    return;
  }
  png_set_expand(png);  // palette and low depths to 8 bits, tRNS to alpha
  png_set_scale_16(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  job.image.width = static_cast<uint32_t>(job.width);
  job.image.height = static_cast<uint32_t>(job.height);
  job.image.channels = png_get_channels(png, info);
  const size_t stride = png_get_rowbytes(png, info);
  if (stride != size_t{job.image.width} * job.image.channels) png_error(png, "unexpected row size");
  job.image.pixels.resize(stride * job.image.height);
  job.rows.resize(job.image.height);
  for (size_t row = 0; row < job.rows.size(); ++row)
    job.rows[row] = &job.image.pixels[row * stride];
  png_read_image(png, job.rows.data());
  png_read_end(png, nullptr);
}

}  // namespace

Result<Image8> decode_png(ImageBytes bytes, const fs::path& path) {
  Job job;
  job.bytes = bytes;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (info) run(job, png, info);
  png_destroy_read_struct(&png, &info, nullptr);
  if (job.size_refused) MILLRACE_TRY(check_image_size(path, job.width, job.height));
  if (!job.error.empty())
    return image_error(path, fmt::format("the PNG is damaged: {}", job.error));
  if (job.image.pixels.empty()) return image_error(path, "the PNG decoder could not be started");
  return std::move(job.image);
}

}  // namespace millrace
