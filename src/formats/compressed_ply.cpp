// Compressed PLY: each chunk has the ranges in which its Gaussians' words count.
#include "formats/compressed_ply.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/file.h"
#include "formats/quantize.h"
#include "formats/space_order.h"
#include "io/cloud_check.h"
#include "io/ply_body.h"
#include "io/ply_header.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kChunkRows = 256;
constexpr float kMostLogScale = 20;
constexpr float kShRange = 8;  // the 256 steps of a coefficient reach from -4 to 4
constexpr float kQuaternionFactor = std::numbers::sqrt2_v<float> / 2;

constexpr std::array kChunkProperties = {
    "min_x",       "min_y",       "min_z",       "max_x",       "max_y",       "max_z",
    "min_scale_x", "min_scale_y", "min_scale_z", "max_scale_x", "max_scale_y", "max_scale_z",
    "min_r",       "min_g",       "min_b",       "max_r",       "max_g",       "max_b"};
constexpr std::array kPackedProperties = {"packed_position", "packed_rotation", "packed_scale",
                                          "packed_color"};

// The ranges of one chunk: means, log-scales, colours.
struct Ranges {
  std::array<float, 3> min, max;

  void add(size_t axis, float value) {
    min[axis] = std::min(min[axis], value);
    max[axis] = std::max(max[axis], value);
  }
  float normalised(size_t axis, float value) const {
    const float side = max[axis] - min[axis];
    return side > 0 ? (value - min[axis]) / side : 0.0f;
  }
  float value(size_t axis, float at) const { return min[axis] + (max[axis] - min[axis]) * at; }
};
constexpr Ranges kNoRange = {{1e38f, 1e38f, 1e38f}, {-1e38f, -1e38f, -1e38f}};

struct Chunk {
  Ranges means = kNoRange, scales = kNoRange, colors = kNoRange;
};

float packed_scale(const GaussianCloud& cloud, size_t i) {
  return std::clamp(cloud.log_scales[i], -kMostLogScale, kMostLogScale);
}
float color_of(const GaussianCloud& cloud, size_t i) { return 0.5f + kShC0 * cloud.sh0[i]; }

Chunk chunk_of(const GaussianCloud& cloud, size_t begin, size_t end) {
  Chunk chunk;
  for (size_t row = begin; row < end; ++row) {
    for (size_t k = 0; k < 3; ++k) {
      chunk.means.add(k, cloud.means[3 * row + k]);
      chunk.scales.add(k, packed_scale(cloud, 3 * row + k));
      chunk.colors.add(k, color_of(cloud, 3 * row + k));
    }
  }
  return chunk;
}

// 11, 10 and 11 bits, x at the top.
template <class ValueOf>
uint32_t pack_vector(const Ranges& ranges, const ValueOf& value) {
  return to_unorm(ranges.normalised(0, value(0)), 11) << 21 |
         to_unorm(ranges.normalised(1, value(1)), 10) << 11 |
         to_unorm(ranges.normalised(2, value(2)), 11);
}
void unpack_vector(const Ranges& ranges, uint32_t word, std::vector<float>& out) {
  out.push_back(ranges.value(0, from_unorm(word >> 21, 11)));
  out.push_back(ranges.value(1, from_unorm(word >> 11, 10)));
  out.push_back(ranges.value(2, from_unorm(word, 11)));
}

uint32_t pack_rotation(const float* q) {
  const SmallestThree small = smallest_three({q[0], q[1], q[2], q[3]});
  uint32_t word = small.largest;
  for (const float value : small.others) {
    word = word << 10 | to_unorm(value * kQuaternionFactor + 0.5f, 10);
  }
  return word;
}
std::array<float, 4> unpack_rotation(uint32_t word) {
  SmallestThree small;
  small.largest = word >> 30;
  for (uint32_t k = 0; k < 3; ++k) {
    small.others[k] = (from_unorm(word >> (20 - 10 * k), 10) - 0.5f) / kQuaternionFactor;
  }
  return from_smallest_three(small);
}

// A step's value is its middle, but for the two ends.
float sh_of_byte(uint8_t byte) {
  const float at = byte == 0 ? 0.0f : byte == 255 ? 1.0f : (static_cast<float>(byte) + 0.5f) / 256;
  return (at - 0.5f) * kShRange;
}
uint8_t byte_of_sh(float value) {
  return static_cast<uint8_t>(
      std::clamp(std::floor((value / kShRange + 0.5f) * 256), 0.0f, 255.0f));
}

std::string header_text(size_t n_chunks, size_t n_rows, size_t n_rest) {
  std::string header = fmt::format(
      "ply\nformat binary_little_endian 1.0\ncomment Millrace\nelement chunk {}\n", n_chunks);
  for (const char* name : kChunkProperties) header += fmt::format("property float {}\n", name);
  header += fmt::format("element vertex {}\n", n_rows);
  for (const char* name : kPackedProperties) header += fmt::format("property uint {}\n", name);
  if (n_rest > 0) {
    header += fmt::format("element sh {}\n", n_rows);
    for (size_t k = 0; k < n_rest; ++k) header += fmt::format("property uchar f_rest_{}\n", k);
  }
  return header + "end_header\n";
}

// ---- reading ----

struct PackedFile {
  std::vector<std::byte> bytes;
  PlyHeader header;
  std::string name;
};

Error missing(const PackedFile& file, const std::string& what) {
  return {ErrorCode::Dataset, fmt::format("{} is no compressed PLY: it lacks {}", file.name, what)};
}

Result<const PlyElement*> element_of(const PackedFile& file, const char* name) {
  const PlyElement* element = file.header.find(name);
  if (element == nullptr) return missing(file, fmt::format("element \"{}\"", name));
  return element;
}

template <size_t kCount>
Result<std::array<size_t, kCount>> columns_of(const PackedFile& file, const PlyElement& element,
                                              const std::array<const char*, kCount>& names,
                                              size_t n_needed) {
  std::array<size_t, kCount> columns = {};
  for (size_t k = 0; k < kCount; ++k) {
    const int column = element.find(names[k]);
    if (column < 0 && k < n_needed) {
      return missing(file, fmt::format("property {} of element \"{}\"", names[k], element.name));
    }
    columns[k] = column < 0 ? SIZE_MAX : static_cast<size_t>(column);
  }
  return columns;
}

Result<std::vector<Chunk>> read_chunks(const PackedFile& file) {
  MILLRACE_ASSIGN(const PlyElement* element, element_of(file, "chunk"));
  constexpr size_t kWithoutColors = 12;
  MILLRACE_ASSIGN(const auto columns, columns_of(file, *element, kChunkProperties, kWithoutColors));
  // Bounds of colours are all there or none is taken.
  const bool has_colors = std::none_of(columns.begin() + kWithoutColors, columns.end(),
                                       [](size_t column) { return column == SIZE_MAX; });
  std::vector<Chunk> chunks;
  chunks.reserve(std::min<uint64_t>(element->count, file.bytes.size()));
  MILLRACE_TRY(read_ply_rows(file.bytes, file.header, *element, file.name,
                             [&](uint64_t, std::span<const double> row) {
                               Chunk chunk;
                               chunk.colors = {{0, 0, 0}, {1, 1, 1}};
                               for (size_t k = 0; k < 3; ++k) {
                                 const auto value = [&](size_t property) {
                                   return static_cast<float>(row[columns[property + k]]);
                                 };
                                 chunk.means.min[k] = value(0);
                                 chunk.means.max[k] = value(3);
                                 chunk.scales.min[k] = value(6);
                                 chunk.scales.max[k] = value(9);
                                 if (!has_colors) continue;
                                 chunk.colors.min[k] = value(12);
                                 chunk.colors.max[k] = value(15);
                               }
                               chunks.push_back(chunk);
                             }));
  return chunks;
}

Result<void> read_vertices(const PackedFile& file, const PlyElement& element,
                           const std::vector<Chunk>& chunks, GaussianCloud& cloud) {
  MILLRACE_ASSIGN(const auto columns,
                  columns_of(file, element, kPackedProperties, kPackedProperties.size()));
  return read_ply_rows(
      file.bytes, file.header, element, file.name, [&](uint64_t i, std::span<const double> row) {
        const Chunk& chunk = chunks[i / kChunkRows];
        const auto word = [&](size_t k) { return static_cast<uint32_t>(row[columns[k]]); };
        unpack_vector(chunk.means, word(0), cloud.means);
        const std::array<float, 4> q = unpack_rotation(word(1));
        cloud.rotations.insert(cloud.rotations.end(), q.begin(), q.end());
        unpack_vector(chunk.scales, word(2), cloud.log_scales);
        for (uint32_t k = 0; k < 3; ++k) {
          const float color = chunk.colors.value(k, from_unorm(word(3) >> (24 - 8 * k), 8));
          cloud.sh0.push_back((color - 0.5f) / kShC0);
        }
        cloud.opacities.push_back(logit_of_byte(static_cast<uint8_t>(word(3) & 255)));
      });
}

Result<void> read_rest(const PackedFile& file, const PlyElement& element, GaussianCloud& cloud) {
  const size_t n = element.properties.size();
  constexpr std::array<size_t, 5> kCounts = {0, 9, 24, 45, 72};
  const auto* known = std::find(kCounts.begin(), kCounts.end(), n);
  for (size_t k = 0; k < n; ++k) {
    const PlyProperty& property = element.properties[k];
    if (property.name == fmt::format("f_rest_{}", k) && property.type == PlyType::Uint8) continue;
    return missing(file, fmt::format("uchar f_rest_{} at its place in element \"sh\"", k));
  }
  if (known == kCounts.end() || element.count != cloud.count()) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{}: element \"sh\" has {} coefficients for {} rows; {} Gaussians "
                             "have 0, 9, 24, 45 or 72 each",
                             file.name, n, element.count, cloud.count())};
  }
  cloud.sh_degree = std::min(3, static_cast<int>(known - kCounts.begin()));
  const auto n_kept = static_cast<size_t>(sh_rest_count(cloud.sh_degree));
  cloud.sh_rest.reserve(3 * n_kept * cloud.count());
  return read_ply_rows(file.bytes, file.header, element, file.name,
                       [&](uint64_t, std::span<const double> row) {
                         for (size_t k = 0; k < n_kept; ++k) {
                           for (size_t c = 0; c < 3; ++c) {
                             const auto byte = static_cast<uint8_t>(row[c * (n / 3) + k]);
                             cloud.sh_rest.push_back(sh_of_byte(byte));
                           }
                         }
                       });
}

}  // namespace

Result<void> write_compressed_ply(const fs::path& path, const GaussianCloud& given) {
  MILLRACE_TRY(check_writable(given, path));
  const GaussianCloud cloud = take_rows(given, morton_order(given));
  const size_t n = cloud.count(), n_chunks = (n + kChunkRows - 1) / kChunkRows;
  const auto n_channel = static_cast<size_t>(sh_rest_count(cloud.sh_degree));
  std::vector<std::byte> chunk_bytes, vertex_bytes, sh_bytes;
  for (size_t begin = 0; begin < n; begin += kChunkRows) {
    const size_t end = std::min<size_t>(n, begin + kChunkRows);
    const Chunk chunk = chunk_of(cloud, begin, end);
    for (const Ranges* ranges : {&chunk.means, &chunk.scales, &chunk.colors}) {
      append_bytes(chunk_bytes, ranges->min);
      append_bytes(chunk_bytes, ranges->max);
    }
    for (size_t row = begin; row < end; ++row) {
      append_bytes(vertex_bytes,
                   pack_vector(chunk.means, [&](size_t k) { return cloud.means[3 * row + k]; }));
      append_bytes(vertex_bytes, pack_rotation(&cloud.rotations[4 * row]));
      append_bytes(vertex_bytes, pack_vector(chunk.scales, [&](size_t k) {
                     return packed_scale(cloud, 3 * row + k);
                   }));
      uint32_t color = 0;
      for (size_t k = 0; k < 3; ++k) {
        color = color << 8 | to_unorm(chunk.colors.normalised(k, color_of(cloud, 3 * row + k)), 8);
      }
      append_bytes(vertex_bytes, color << 8 | opacity_byte(cloud.opacities[row]));
      for (size_t c = 0; c < 3; ++c) {
        for (size_t k = 0; k < n_channel; ++k) {
          append_bytes(sh_bytes, byte_of_sh(cloud.sh_rest[(row * n_channel + k) * 3 + c]));
        }
      }
    }
  }
  const std::string header = header_text(n_chunks, n, 3 * n_channel);
  MILLRACE_ASSIGN(AtomicFile file, AtomicFile::create(path));
  MILLRACE_TRY(file.write(std::as_bytes(std::span(header))));
  for (const auto* bytes : {&chunk_bytes, &vertex_bytes, &sh_bytes}) {
    MILLRACE_TRY(file.write(*bytes));
  }
  return file.commit();
}

Result<GaussianCloud> read_compressed_ply(const fs::path& path) {
  PackedFile file;
  file.name = path.string();
  MILLRACE_ASSIGN(file.bytes, read_file(path));
  MILLRACE_ASSIGN(file.header, parse_ply_header(file.bytes, file.name));
  MILLRACE_ASSIGN(const PlyElement* vertex, element_of(file, "vertex"));
  MILLRACE_TRY(check_ply_body_size(file.bytes, file.header, file.name));
  MILLRACE_ASSIGN(const std::vector<Chunk> chunks, read_chunks(file));
  if (chunks.size() < (vertex->count + kChunkRows - 1) / kChunkRows) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{}: {} chunks of 256 rows are too few for {} Gaussians", file.name,
                             chunks.size(), vertex->count)};
  }
  GaussianCloud cloud;
  cloud.sh_degree = 0;
  MILLRACE_TRY(read_vertices(file, *vertex, chunks, cloud));
  if (const PlyElement* sh = file.header.find("sh")) MILLRACE_TRY(read_rest(file, *sh, cloud));
  MILLRACE_TRY(check_finite_rows(cloud, file.name));
  return cloud;
}

bool is_compressed_ply(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string head(64 << 10, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(in.gcount()));
  const size_t end = head.find("end_header");
  return head.starts_with("ply") && end != std::string::npos && head.find("packed_position") < end;
}

}  // namespace millrace
