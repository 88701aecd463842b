// A bounded reader of the few EXIF fields that tell a photograph's exposure. Source: CIPA
// DC-008-2019 (Exif 2.32), sections 4.5 and 4.6.
#include "data/exif.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

namespace millrace {
namespace {

constexpr size_t kReadBytes = 256u << 10;
constexpr uint16_t kExifFolder = 0x8769, kExposureTime = 0x829A, kFNumber = 0x829D;
constexpr uint16_t kSensitivity = 0x8827;
constexpr uint16_t kShort = 3, kLong = 4, kRational = 5;
constexpr size_t kEntryBytes = 12;

/// The fields of a TIFF structure; reading past the end gives 0, so that damage finds nothing.
class TiffFields {
 public:
  explicit TiffFields(std::span<const std::byte> bytes) : bytes_(bytes) {
    big_endian_ = bytes.size() >= 8 && bytes[0] == std::byte{'M'};
  }

  bool is_valid() const {
    const bool marked = bytes_.size() >= 8 && bytes_[0] == bytes_[1] &&
                        (bytes_[0] == std::byte{'M'} || bytes_[0] == std::byte{'I'});
    return marked && number(2, 2) == 42;
  }
  uint32_t first_folder() const { return number(4, 4); }

  /// The first value of field `tag` of the folder at `at`, or none.
  std::optional<double> field(uint32_t at, uint16_t tag) const {
    const uint32_t n_entries = number(at, 2);
    for (uint32_t i = 0; i < n_entries; ++i) {
      const uint64_t entry = uint64_t{at} + 2 + uint64_t{kEntryBytes} * i;
      if (entry + kEntryBytes > bytes_.size()) return {};
      if (number(entry, 2) != tag) continue;
      const uint32_t type = number(entry + 2, 2);
      if (type == kShort) return number(entry + 8, 2);
      if (type == kLong) return number(entry + 8, 4);
      if (type != kRational) return {};
      const uint64_t value = number(entry + 8, 4);
      const uint32_t below = number(value + 4, 4);
      if (below == 0) return {};
      return static_cast<double>(number(value, 4)) / below;
    }
    return {};
  }

 private:
  uint32_t number(uint64_t at, size_t n_bytes) const {
    if (at + n_bytes > bytes_.size()) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < n_bytes; ++i) {
      const size_t from = big_endian_ ? i : n_bytes - 1 - i;
      value = value << 8 | static_cast<uint8_t>(bytes_[at + from]);
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  bool big_endian_ = false;
};

/// The TIFF structure in a JPEG's APP1 segment; empty if there is none.
std::span<const std::byte> exif_segment(std::span<const std::byte> jpeg) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(jpeg[i]); };
  size_t at = 2;
  while (at + 10 <= jpeg.size() && byte(at) == 0xFF && byte(at + 1) != 0xDA) {
    if (byte(at + 1) == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const size_t length = size_t{byte(at + 2)} << 8 | byte(at + 3);
    const size_t end = std::min(jpeg.size(), at + 2 + std::max<size_t>(2, length));
    if (byte(at + 1) == 0xE1 && std::memcmp(&jpeg[at + 4], "Exif\0", 6) == 0) {
      return end > at + 10 ? jpeg.subspan(at + 10, end - at - 10) : std::span<const std::byte>();
    }
    at = end;
  }
  return {};
}

}  // namespace

std::optional<double> exposure_value(std::span<const std::byte> file) {
  const bool is_jpeg = file.size() > 4 && file[0] == std::byte{0xFF} && file[1] == std::byte{0xD8};
  const TiffFields fields(is_jpeg ? exif_segment(file) : file);
  if (!fields.is_valid()) return {};
  const std::optional<double> folder = fields.field(fields.first_folder(), kExifFolder);
  if (!folder) return {};
  const auto at = static_cast<uint32_t>(*folder);
  const auto seconds = fields.field(at, kExposureTime), f_number = fields.field(at, kFNumber);
  const auto iso = fields.field(at, kSensitivity);
  if (!seconds || !f_number || !iso) return {};
  if (*seconds <= 0 || *f_number <= 0 || *iso <= 0) return {};
  return std::log2(*seconds * *iso / (100 * *f_number * *f_number));
}

std::optional<double> read_exposure_value(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes(kReadBytes);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(in.gcount()));
  return exposure_value(std::as_bytes(std::span(bytes)));
}

}  // namespace millrace
