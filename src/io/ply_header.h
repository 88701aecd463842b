// The header of a PLY file: its elements, their properties, and where the body begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace millrace {

enum class PlyFormat : uint8_t { Ascii, BinaryLittle, BinaryBig };

enum class PlyType : uint8_t { Int8, Uint8, Int16, Uint16, Int32, Uint32, Float32, Float64 };

/// Size in a binary body: 1, 2, 4 or 8.
size_t ply_type_bytes(PlyType type);

struct PlyProperty {
  std::string name;
  PlyType type = PlyType::Float32;
  bool is_list = false;
  PlyType count_type = PlyType::Uint8;  // of a list's length
};

struct PlyElement {
  std::string name;
  uint64_t count = 0;
  std::vector<PlyProperty> properties;

  bool has_list() const;
  /// The least number of bytes that a row takes in a binary body (exact without lists).
  uint64_t min_row_bytes() const;
  /// Position among `properties`, or -1.
  int find(const std::string& property) const;
};

struct PlyHeader {
  PlyFormat format = PlyFormat::Ascii;
  std::vector<PlyElement> elements;
  std::vector<std::string> comments;  // without the word and the blanks around them
  size_t body_offset = 0;             // byte at which the body begins
  uint64_t n_lines = 0;               // of the header, end_header included

  /// The element of that name, or null.
  const PlyElement* find(const std::string& element) const;
};

/// Reads the header at the start of `bytes`; `file` is for messages. Lines may end in LF or CRLF.
/// Errors: ErrorCode::Dataset naming the file and the line, or the byte where the header breaks
/// off.
Result<PlyHeader> parse_ply_header(std::span<const std::byte> bytes, const std::string& file);

}  // namespace millrace
