// The `.splat` layout of the first web viewers.
#include "formats/splat_file.h"

#include <fmt/format.h>

#include <bit>
#include <numeric>

#include "base/file.h"
#include "formats/quantize.h"
#include "io/cloud_check.h"

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kRowBytes = 32;
constexpr float kFlatLogScale = -30;  // as the PLY reader has it for a scale of zero
constexpr float kMostLogScale = 80;   // its exponential is still a float32

// How much of a picture a Gaussian makes: its size times its opacity.
std::vector<uint32_t> by_importance(const GaussianCloud& cloud) {
  std::vector<float> score(cloud.count());
  for (size_t i = 0; i < score.size(); ++i) {
    const float* s = &cloud.log_scales[3 * i];
    score[i] = s[0] + s[1] + s[2] + std::log(sigmoid(cloud.opacities[i]) + 1e-30f);
  }
  std::vector<uint32_t> rows(cloud.count());
  std::iota(rows.begin(), rows.end(), 0u);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](uint32_t a, uint32_t b) { return score[a] > score[b]; });
  return rows;
}

}  // namespace

Result<void> write_splat(const std::filesystem::path& path, const GaussianCloud& cloud) {
  MILLRACE_TRY(check_writable(cloud, path));
  std::vector<std::byte> out;
  out.reserve(kRowBytes * cloud.count());
  for (const uint32_t row : by_importance(cloud)) {
    for (size_t k = 0; k < 3; ++k) append_bytes(out, cloud.means[3 * row + k]);
    for (size_t k = 0; k < 3; ++k) {
      append_bytes(out, std::exp(std::min(cloud.log_scales[3 * row + k], kMostLogScale)));
    }
    for (size_t k = 0; k < 3; ++k) {
      append_bytes(out, to_byte(255 * (0.5f + kShC0 * cloud.sh0[3 * row + k])));
    }
    append_bytes(out, opacity_byte(cloud.opacities[row]));
    const float* q = &cloud.rotations[4 * size_t{row}];
    const float norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    // q and -q are one rotation. Bytes reach -1 but not +1, so the largest component is negative.
    const float* largest =
        std::max_element(q, q + 4, [](float a, float b) { return std::abs(a) < std::abs(b); });
    const float factor = norm > 0 ? (*largest > 0 ? -128.0f : 128.0f) / norm : 0.0f;
    for (size_t k = 0; k < 4; ++k) append_bytes(out, to_byte(128 + factor * q[k]));
  }
  return write_file_atomically(path, out);
}

Result<GaussianCloud> read_splat(const std::filesystem::path& path) {
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  if (bytes.empty() || bytes.size() % kRowBytes != 0) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{}: ends at byte {} inside a Gaussian (32 bytes each): it is "
                             "truncated or no .splat file",
                             path.string(), bytes.size())};
  }
  GaussianCloud cloud;
  cloud.sh_degree = 0;
  for (size_t at = 0; at < bytes.size(); at += kRowBytes) {
    for (size_t k = 0; k < 3; ++k) cloud.means.push_back(bytes_at<float>(bytes, at + 4 * k));
    for (size_t k = 0; k < 3; ++k) {
      const auto scale = bytes_at<float>(bytes, at + 12 + 4 * k);
      if (scale < 0) {
        return Error{ErrorCode::Dataset,
                     fmt::format("{}: byte {}: a scale of {} is below zero: no .splat file",
                                 path.string(), at + 12 + 4 * k, scale)};
      }
      cloud.log_scales.push_back(scale == 0 ? kFlatLogScale : std::log(scale));
    }
    for (size_t k = 0; k < 3; ++k) {
      const auto byte = bytes_at<uint8_t>(bytes, at + 24 + k);
      cloud.sh0.push_back((static_cast<float>(byte) / 255 - 0.5f) / kShC0);
    }
    cloud.opacities.push_back(logit_of_byte(bytes_at<uint8_t>(bytes, at + 27)));
    for (size_t k = 0; k < 4; ++k) {
      const auto byte = bytes_at<uint8_t>(bytes, at + 28 + k);
      cloud.rotations.push_back((static_cast<float>(byte) - 128) / 128);
    }
  }
  MILLRACE_TRY(check_finite_rows(cloud, path.string()));
  return cloud;
}

}  // namespace millrace
