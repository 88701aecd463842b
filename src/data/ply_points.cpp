// A PLY reader for point clouds.
#include "data/ply_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/text_fields.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

enum class Type : uint8_t { None, I8, U8, I16, U16, I32, U32, F32, F64 };

Type type_of(std::string_view name) {
  if (name == "char" || name == "int8") return Type::I8;
  if (name == "uchar" || name == "uint8") return Type::U8;
  if (name == "short" || name == "int16") return Type::I16;
  if (name == "ushort" || name == "uint16") return Type::U16;
  if (name == "int" || name == "int32") return Type::I32;
  if (name == "uint" || name == "uint32") return Type::U32;
  if (name == "float" || name == "float32") return Type::F32;
  if (name == "double" || name == "float64") return Type::F64;
  return Type::None;
}

size_t size_of(Type type) {
  constexpr size_t kSizes[] = {0, 1, 1, 2, 2, 4, 4, 4, 8};
  return kSizes[static_cast<size_t>(type)];
}

template <class T>
double load(const char* bytes, bool swap) {
  std::array<char, sizeof(T)> copy;
  std::memcpy(copy.data(), bytes, sizeof(T));
  if (swap) std::reverse(copy.begin(), copy.end());
  return static_cast<double>(std::bit_cast<T>(copy));
}

double load_as(Type type, const char* bytes, bool swap) {
  switch (type) {
    case Type::I8:
      return load<int8_t>(bytes, swap);
    case Type::U8:
      return load<uint8_t>(bytes, swap);
    case Type::I16:
      return load<int16_t>(bytes, swap);
    case Type::U16:
      return load<uint16_t>(bytes, swap);
    case Type::I32:
      return load<int32_t>(bytes, swap);
    case Type::U32:
      return load<uint32_t>(bytes, swap);
    case Type::F32:
      return load<float>(bytes, swap);
    case Type::F64:
      return load<double>(bytes, swap);
    case Type::None:
      break;
  }
  return 0;
}

struct Property {
  std::string name;
  Type type = Type::None;
  size_t offset = 0;
};

struct Header {
  enum class Format : uint8_t { Ascii, Little, Big } format = Format::Ascii;
  uint64_t n_vertices = 0;
  std::vector<Property> properties;
  size_t stride = 0;
};

constexpr std::array<std::string_view, 6> kWanted = {"x", "y", "z", "red", "green", "blue"};

}  // namespace

Result<PointCloud> read_point_ply(const fs::path& path) {
  MILLRACE_ASSIGN(const std::string text, read_text_file(path));
  std::string_view rest = text, line;
  uint64_t number = 0;
  const auto refuse = [&](const std::string& what) {
    return Error{ErrorCode::Dataset, fmt::format("{}: line {}: {}", path.string(), number, what)};
  };

  Header header;
  bool in_vertex = false, seen_vertex = false, ended = false;
  while (!ended && take_line(rest, line)) {
    ++number;
    line = trim(line);
    if (number == 1 && line != "ply") return refuse("this is no PLY file");
    const std::string_view word = take_field(line);
    if (word == "format") {
      const std::string_view format = take_field(line);
      if (format == "ascii")
        header.format = Header::Format::Ascii;
      else if (format == "binary_little_endian")
        header.format = Header::Format::Little;
      else if (format == "binary_big_endian")
        header.format = Header::Format::Big;
      else
        return refuse(fmt::format("unknown format '{}'", format));
    } else if (word == "element") {
      const std::string_view name = take_field(line);
      const auto count = parse_integer<uint64_t>(take_field(line));
      if (!count) return refuse("an element without a count");
      in_vertex = name == "vertex";
      if (in_vertex) header.n_vertices = *count, seen_vertex = true;
      if (!in_vertex && !seen_vertex && *count > 0)
        return refuse("an element stands before 'vertex'");
    } else if (word == "property" && in_vertex) {
      const Type type = type_of(take_field(line));
      if (type == Type::None) return refuse("a property of 'vertex' is a list or of unknown type");
      header.properties.push_back({std::string(take_field(line)), type, header.stride});
      header.stride += size_of(type);
    } else if (word == "end_header") {
      ended = true;
    }
  }
  if (!ended) return refuse("the header has no end");

  std::array<const Property*, 6> wanted = {};
  std::array<size_t, 6> column = {};
  for (size_t w = 0; w < kWanted.size(); ++w) {
    for (size_t i = 0; i < header.properties.size(); ++i) {
      if (header.properties[i].name == kWanted[w]) wanted[w] = &header.properties[i], column[w] = i;
    }
  }
  if (!wanted[0] || !wanted[1] || !wanted[2]) return refuse("'vertex' has no x, y and z");
  const bool colored = wanted[3] && wanted[4] && wanted[5];
  const bool ascii = header.format == Header::Format::Ascii;
  const size_t least = ascii ? 2 * header.properties.size() : header.stride;
  // The last line of an ascii file may lack its end.
  if (header.n_vertices > (rest.size() + (ascii ? 1 : 0)) / least) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: byte {}: {} points announced, but the {} bytes that follow cannot hold "
                    "them: it is truncated or corrupt",
                    path.string(), text.size() - rest.size(), header.n_vertices, rest.size())};
  }

  PointCloud cloud;
  cloud.positions.reserve(3 * header.n_vertices);
  cloud.colors.reserve(3 * header.n_vertices);
  const bool swap = header.format == Header::Format::Big;
  std::vector<double> row(header.properties.size());
  for (uint64_t i = 0; i < header.n_vertices; ++i) {
    std::array<double, 6> value = {0, 0, 0, 128, 128, 128};
    if (ascii) {
      do {
        if (!take_line(rest, line)) return refuse("the file ends before its last point");
        ++number;
      } while (trim(line).empty());
      for (double& cell : row) {
        const auto parsed = parse_double(take_field(line));
        if (!parsed) return refuse("a number expected");
        cell = *parsed;
      }
    }
    for (size_t w = 0; w < (colored ? 6u : 3u); ++w) {
      value[w] = ascii ? row[column[w]]
                       : load_as(wanted[w]->type,
                                 rest.data() + i * header.stride + wanted[w]->offset, swap);
      const bool is_float = wanted[w]->type == Type::F32 || wanted[w]->type == Type::F64;
      if (w >= 3 && is_float) value[w] *= 255;
    }
    for (int k = 0; k < 3; ++k) cloud.positions.push_back(static_cast<float>(value[k]));
    for (int k = 3; k < 6; ++k) {
      const double color = std::isfinite(value[k]) ? std::clamp(value[k], 0.0, 255.0) : 128;
      cloud.colors.push_back(static_cast<uint8_t>(std::lround(color)));
    }
  }
  return cloud;
}

}  // namespace millrace
