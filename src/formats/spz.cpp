// SPZ: fixed point positions and one byte for most else, array by array.
#include "formats/spz.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/file.h"
#include "formats/quantize.h"
#include "io/cloud_check.h"

namespace millrace {
namespace {

constexpr uint32_t kMagic = 0x5053474e;  // "NGSP"
constexpr size_t kHeaderBytes = 16, kHeaderBytesV4 = 32, kTocEntryBytes = 16;
constexpr uint32_t kUsualFractionBits = 12, kMostFractionBits = 20;
constexpr float kLargestFixed = (1 << 23) - 1;
constexpr float kColorFactor = 0.15f * 255, kColorOffset = 127.5f;
constexpr float kScaleFactor = 16, kScaleOffset = 10;
// More than this a file of splats is not compressed; keeps what is allocated near the file's size.
constexpr uint64_t kMostRatio = 2048;

// The file's axes are x right, y up, z back; ours are x right, y down, z forward. Half a turn about
// x: it flips y and z of points and of the quaternion's vector, and every harmonic that is odd in
// (y, z) together.
constexpr std::array<float, 3> kFlip = {1, -1, -1};
constexpr std::array<float, 24> kFlipSh = {-1, -1, 1,                 // degree 1: y z x
                                           -1, 1,  1,  -1, 1,         // 2: xy yz zz xz xx-yy
                                           -1, 1,  -1, -1, 1, -1, 1,  // 3
                                           -1, 1,  -1, 1,  1, -1, 1, -1, 1};  // 4

enum Array : size_t { kPositions, kAlphas, kColors, kScales, kRotations, kSh, kArrays };

struct SpzHeader {
  uint32_t version = 0, n_rows = 0;
  uint8_t sh_degree = 0, fraction_bits = 0, flags = 0;

  std::array<uint64_t, kArrays> array_bytes() const {
    const uint64_t n = n_rows;
    const auto n_rest = static_cast<uint64_t>(sh_rest_count(sh_degree));
    return {9 * n, n, 3 * n, 3 * n, (version == 2 ? 3 : 4) * n, 3 * n_rest * n};
  }
  uint64_t total_bytes() const {
    uint64_t sum = 0;
    for (const uint64_t bytes : array_bytes()) sum += bytes;
    return sum;
  }
};

// ---- writing ----

// Enough that the farthest Gaussian still fits, and for small ones a step well below their size.
uint8_t fraction_bits_for(const GaussianCloud& cloud) {
  float farthest = 0;
  for (const float x : cloud.means) farthest = std::max(farthest, std::abs(x));
  std::vector<float> least(cloud.count());
  for (size_t i = 0; i < least.size(); ++i) {
    const float* s = &cloud.log_scales[3 * i];
    least[i] = std::min({s[0], s[1], s[2]});
  }
  uint32_t bits = kUsualFractionBits;
  if (!least.empty()) {
    auto middle = least.begin() + static_cast<ptrdiff_t>(least.size() / 2);
    std::nth_element(least.begin(), middle, least.end());
    const double step = std::exp(static_cast<double>(*middle)) / 16;
    while (bits < kMostFractionBits && std::ldexp(1.0, -static_cast<int>(bits)) > step) ++bits;
  }
  while (bits > 0 && std::ldexp(farthest, static_cast<int>(bits)) > kLargestFixed) --bits;
  return static_cast<uint8_t>(bits);
}

uint8_t byte_of_sh(float value, int bits) {
  const int step = 1 << (8 - bits);
  const float at = std::round(std::clamp(value, -2.0f, 2.0f) * 128) + 128;
  return static_cast<uint8_t>(std::clamp((static_cast<int>(at) + step / 2) / step * step, 0, 255));
}

void append_position(const float* mean, uint32_t fraction_bits, ByteVector& out) {
  for (size_t k = 0; k < 3; ++k) {
    const float fixed = std::round(std::ldexp(kFlip[k] * mean[k], static_cast<int>(fraction_bits)));
    const auto word = static_cast<int32_t>(std::clamp(fixed, -kLargestFixed, kLargestFixed));
    for (int byte = 0; byte < 3; ++byte) {
      out.push_back(static_cast<std::byte>(static_cast<uint32_t>(word) >> (8 * byte) & 255));
    }
  }
}

// Of (x, y, z, w): the largest one's index on top, then three times a sign and nine bits.
void append_rotation(const float* q, ByteVector& out) {
  const SmallestThree small =
      smallest_three({kFlip[0] * q[1], kFlip[1] * q[2], kFlip[2] * q[3], q[0]});
  uint32_t word = small.largest;
  for (const float value : small.others) {
    const uint32_t size = to_unorm(std::abs(value) * std::numbers::sqrt2_v<float>, 9);
    word = word << 10 | (value < 0 ? 1u << 9 : 0u) | size;
  }
  append_bytes(out, word);
}

std::array<ByteVector, kArrays> encode_arrays(const GaussianCloud& cloud, uint32_t fraction_bits,
                                              int sh_bits) {
  std::array<ByteVector, kArrays> arrays;
  const auto put = [&](Array array, uint8_t byte) {
    arrays[array].push_back(static_cast<std::byte>(byte));
  };
  const auto n_rest = static_cast<size_t>(sh_rest_count(cloud.sh_degree));
  for (size_t i = 0; i < cloud.count(); ++i) {
    append_position(&cloud.means[3 * i], fraction_bits, arrays[kPositions]);
    put(kAlphas, opacity_byte(cloud.opacities[i]));
    for (size_t k = 0; k < 3; ++k) {
      put(kColors, to_byte(cloud.sh0[3 * i + k] * kColorFactor + kColorOffset));
      put(kScales, to_byte((cloud.log_scales[3 * i + k] + kScaleOffset) * kScaleFactor));
    }
    append_rotation(&cloud.rotations[4 * i], arrays[kRotations]);
    for (size_t k = 0; k < n_rest; ++k) {
      const int bits = k < 3 ? std::min(8, sh_bits + 1) : sh_bits;
      for (size_t c = 0; c < 3; ++c) {
        put(kSh, byte_of_sh(kFlipSh[k] * cloud.sh_rest[3 * (i * n_rest + k) + c], bits));
      }
    }
  }
  return arrays;
}

// ---- reading ----

Error damaged(const std::string& what, uint64_t byte, const std::string& text) {
  return {ErrorCode::Dataset, fmt::format("{}: byte {}: {}", what, byte, text)};
}

Result<SpzHeader> parse_header(ByteSpan bytes, const std::string& what, uint64_t file_bytes) {
  if (bytes.size() < kHeaderBytes || bytes_at<uint32_t>(bytes, 0) != kMagic) {
    return damaged(what, 0, "there is no SPZ header");
  }
  SpzHeader header;
  header.version = bytes_at<uint32_t>(bytes, 4);
  header.n_rows = bytes_at<uint32_t>(bytes, 8);
  header.sh_degree = bytes_at<uint8_t>(bytes, 12);
  header.fraction_bits = bytes_at<uint8_t>(bytes, 13);
  header.flags = bytes_at<uint8_t>(bytes, 14);
  if (header.version < 2 || header.version > 4) {
    return damaged(what, 4,
                   fmt::format("SPZ version {} is not read (2, 3 and 4 are)", header.version));
  }
  if (header.sh_degree > 4) {
    return damaged(what, 12, fmt::format("SH degree {} is not 0 to 4", header.sh_degree));
  }
  if (header.fraction_bits > 23) {
    return damaged(what, 13, fmt::format("{} fraction bits of 24", header.fraction_bits));
  }
  if (header.total_bytes() > kMostRatio * file_bytes) {
    return damaged(what, 8,
                   fmt::format("{} Gaussians announced, which {} bytes cannot hold: it is "
                               "truncated or corrupt",
                               header.n_rows, file_bytes));
  }
  return header;
}

Result<std::array<ByteVector, kArrays>> gzip_arrays(ByteSpan file, const SpzHeader& header,
                                                    const std::string& what) {
  MILLRACE_ASSIGN(const ByteVector all,
                  inflate_exactly(file, Deflate::Gzip, kHeaderBytes + header.total_bytes(), what));
  std::array<ByteVector, kArrays> arrays;
  auto at = all.begin() + kHeaderBytes;
  const auto sizes = header.array_bytes();
  for (size_t k = 0; k < kArrays; ++k) {
    const auto end = at + static_cast<ptrdiff_t>(sizes[k]);
    arrays[k].assign(at, end);
    at = end;
  }
  return arrays;
}

Result<std::array<ByteVector, kArrays>> zstd_arrays(ByteSpan file, const SpzHeader& header,
                                                    const std::string& what) {
  if (file.size() < kHeaderBytesV4) return damaged(what, file.size(), "the header is cut off");
  const auto n_streams = bytes_at<uint8_t>(file, 15);
  const uint64_t toc = bytes_at<uint32_t>(file, 16);
  uint64_t at = toc + kTocEntryBytes * n_streams;
  if (toc < kHeaderBytesV4 || at > file.size()) {
    return damaged(
        what, 16,
        fmt::format("a table of {} streams at byte {} is not in the file", n_streams, toc));
  }
  std::array<ByteVector, kArrays> arrays;
  const auto sizes = header.array_bytes();
  uint64_t stream = 0;
  for (size_t k = 0; k < kArrays; ++k) {
    if (sizes[k] == 0) continue;
    const uint64_t entry = toc + kTocEntryBytes * stream;
    if (stream++ == n_streams) {
      return damaged(what, 15, fmt::format("{} streams are too few", n_streams));
    }
    const auto packed = bytes_at<uint64_t>(file, entry);
    const auto unpacked = bytes_at<uint64_t>(file, entry + 8);
    if (unpacked != sizes[k] || packed > file.size() - at) {
      return damaged(what, entry,
                     fmt::format("a stream of {} bytes for {}, where {} are left and {} needed",
                                 packed, unpacked, file.size() - at, sizes[k]));
    }
    MILLRACE_ASSIGN(arrays[k], unzstd_exactly(file.subspan(at, packed), unpacked,
                                              fmt::format("{}: byte {}", what, at)));
    at += packed;
  }
  return arrays;
}

std::array<float, 4> rotation_of_xyz(ByteSpan bytes) {
  std::array<float, 4> q = {};  // w x y z
  float rest = 1;
  for (size_t k = 0; k < 3; ++k) {
    q[k + 1] = static_cast<float>(std::to_integer<uint8_t>(bytes[k])) / 127.5f - 1;
    rest -= q[k + 1] * q[k + 1];
    q[k + 1] *= kFlip[k];
  }
  q[0] = std::sqrt(std::max(0.0f, rest));
  return q;
}

std::array<float, 4> rotation_of_word(uint32_t word) {
  SmallestThree small;
  small.largest = word >> 30;
  for (uint32_t k = 0; k < 3; ++k) {
    const uint32_t part = word >> (20 - 10 * k);
    const float size = from_unorm(part, 9) / std::numbers::sqrt2_v<float>;
    small.others[k] = part & (1u << 9) ? -size : size;
  }
  const std::array<float, 4> q = from_smallest_three(small);  // x y z w
  return {q[3], kFlip[0] * q[0], kFlip[1] * q[1], kFlip[2] * q[2]};
}

GaussianCloud decode_arrays(const SpzHeader& header,
                            const std::array<ByteVector, kArrays>& arrays) {
  GaussianCloud cloud;
  cloud.sh_degree = std::min<int>(3, header.sh_degree);
  const auto n_rest = static_cast<size_t>(sh_rest_count(header.sh_degree));
  const auto n_kept = static_cast<size_t>(sh_rest_count(cloud.sh_degree));
  const auto byte = [&](Array array, size_t i) {
    return static_cast<float>(std::to_integer<uint8_t>(arrays[array][i]));
  };
  for (size_t i = 0; i < header.n_rows; ++i) {
    for (size_t k = 0; k < 3; ++k) {
      uint32_t word = 0;
      for (size_t b = 0; b < 3; ++b) {
        word |= std::to_integer<uint32_t>(arrays[kPositions][9 * i + 3 * k + b]) << (8 * b + 8);
      }
      const auto fixed = static_cast<float>(static_cast<int32_t>(word) >> 8);  // with its sign
      cloud.means.push_back(kFlip[k] * std::ldexp(fixed, -int{header.fraction_bits}));
      cloud.log_scales.push_back(byte(kScales, 3 * i + k) / kScaleFactor - kScaleOffset);
      cloud.sh0.push_back((byte(kColors, 3 * i + k) - kColorOffset) / kColorFactor);
    }
    cloud.opacities.push_back(logit_of_byte(std::to_integer<uint8_t>(arrays[kAlphas][i])));
    const auto q = header.version == 2
                       ? rotation_of_xyz(ByteSpan(arrays[kRotations]).subspan(3 * i, 3))
                       : rotation_of_word(bytes_at<uint32_t>(arrays[kRotations], 4 * i));
    cloud.rotations.insert(cloud.rotations.end(), q.begin(), q.end());
    for (size_t k = 0; k < n_kept; ++k) {
      for (size_t c = 0; c < 3; ++c) {
        const float value = (byte(kSh, 3 * (i * n_rest + k) + c) - 128) / 128;
        cloud.sh_rest.push_back(kFlipSh[k] * value);
      }
    }
  }
  return cloud;
}

}  // namespace

ByteVector encode_spz(const GaussianCloud& cloud, const SpzOptions& options) {
  const uint8_t fraction_bits = fraction_bits_for(cloud);
  const auto arrays = encode_arrays(cloud, fraction_bits, options.sh_bits);
  ByteVector out;
  append_bytes(out, kMagic);
  append_bytes(out, static_cast<uint32_t>(options.version));
  append_bytes(out, static_cast<uint32_t>(cloud.count()));
  append_bytes(out, static_cast<uint8_t>(cloud.sh_degree));
  append_bytes(out, fraction_bits);
  append_bytes(out, uint8_t{0});  // flags
  if (options.version == 3) {
    append_bytes(out, uint8_t{0});
    for (const ByteVector& array : arrays) out.insert(out.end(), array.begin(), array.end());
    return gzip(out);
  }
  ByteVector toc, streams;
  uint8_t n_streams = 0;
  for (const ByteVector& array : arrays) {
    if (array.empty()) continue;
    const ByteVector packed = zstd(array);
    append_bytes(toc, uint64_t{packed.size()});
    append_bytes(toc, uint64_t{array.size()});
    streams.insert(streams.end(), packed.begin(), packed.end());
    ++n_streams;
  }
  append_bytes(out, n_streams);
  append_bytes(out, static_cast<uint32_t>(kHeaderBytesV4));  // where the table begins
  out.resize(kHeaderBytesV4);
  out.insert(out.end(), toc.begin(), toc.end());
  out.insert(out.end(), streams.begin(), streams.end());
  return out;
}

Result<void> write_spz(const std::filesystem::path& path, const GaussianCloud& cloud,
                       const SpzOptions& options) {
  MILLRACE_TRY(check_writable(cloud, path));
  return write_file_atomically(path, encode_spz(cloud, options));
}

Result<GaussianCloud> decode_spz(ByteSpan bytes, const std::string& what) {
  const bool is_gzip =
      bytes.size() > 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
  ByteVector head;
  if (is_gzip) {
    MILLRACE_ASSIGN(head, inflate_at_most(bytes, Deflate::Gzip, kHeaderBytes, what));
  } else {
    head.assign(bytes.begin(),
                bytes.begin() + static_cast<ptrdiff_t>(std::min(bytes.size(), kHeaderBytes)));
  }
  MILLRACE_ASSIGN(const SpzHeader header, parse_header(head, what, bytes.size()));
  if (is_gzip == (header.version == 4)) {
    return damaged(
        what, 4,
        fmt::format("version {} is {} a gzip stream", header.version, is_gzip ? "not" : "always"));
  }
  std::array<ByteVector, kArrays> arrays;
  if (is_gzip) {
    MILLRACE_ASSIGN(arrays, gzip_arrays(bytes, header, what));
  } else {
    MILLRACE_ASSIGN(arrays, zstd_arrays(bytes, header, what));
  }
  return decode_arrays(header, arrays);
}

Result<GaussianCloud> read_spz(const std::filesystem::path& path) {
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  return decode_spz(bytes, path.string());
}

}  // namespace millrace
