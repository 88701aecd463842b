// Walking through ascii and binary PLY bodies.
#include "io/ply_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little, "binary PLY is read as little endian");

template <class T>
double number_at(const std::byte* at, bool big_endian) {
  std::array<std::byte, sizeof(T)> raw;
  std::memcpy(raw.data(), at, sizeof(T));
  if (big_endian) std::reverse(raw.begin(), raw.end());
  return static_cast<double>(std::bit_cast<T>(raw));
}

double number_at(const std::byte* at, PlyType type, bool big_endian) {
  switch (type) {
    case PlyType::Int8:
      return number_at<int8_t>(at, big_endian);
    case PlyType::Uint8:
      return number_at<uint8_t>(at, big_endian);
    case PlyType::Int16:
      return number_at<int16_t>(at, big_endian);
    case PlyType::Uint16:
      return number_at<uint16_t>(at, big_endian);
    case PlyType::Int32:
      return number_at<int32_t>(at, big_endian);
    case PlyType::Uint32:
      return number_at<uint32_t>(at, big_endian);
    case PlyType::Float32:
      return number_at<float>(at, big_endian);
    case PlyType::Float64:
      return number_at<double>(at, big_endian);
  }
  return 0;
}

class BinaryCursor {
 public:
  BinaryCursor(std::span<const std::byte> bytes, const PlyHeader& header, const std::string& file)
      : bytes_(bytes),
        at_(header.body_offset),
        file_(file),
        big_endian_(header.format == PlyFormat::BinaryBig) {}

  Result<void> skip(const PlyElement& element) {
    if (element.properties.empty()) return {};
    if (!element.has_list()) {
      const uint64_t row_bytes = element.min_row_bytes();
      if (element.count > (bytes_.size() - at_) / row_bytes) return ends_in(element, 0);
      at_ += static_cast<size_t>(element.count * row_bytes);
      return {};
    }
    std::vector<double> values(element.properties.size());
    for (uint64_t row = 0; row < element.count; ++row) MILLRACE_TRY(next(element, row, values));
    return {};
  }

  Result<void> next(const PlyElement& element, uint64_t row, std::vector<double>& values) {
    for (size_t i = 0; i < element.properties.size(); ++i) {
      const PlyProperty& property = element.properties[i];
      const PlyType type = property.is_list ? property.count_type : property.type;
      const size_t n_bytes = ply_type_bytes(type);
      if (n_bytes > bytes_.size() - at_) return ends_in(element, row);
      values[i] = number_at(bytes_.data() + at_, type, big_endian_);
      at_ += n_bytes;
      if (!property.is_list) continue;
      const double length = values[i];
      const size_t left = (bytes_.size() - at_) / ply_type_bytes(property.type);
      if (length < 0 || length > static_cast<double>(left)) return ends_in(element, row);
      at_ += static_cast<size_t>(length) * ply_type_bytes(property.type);
      values[i] = 0;
    }
    return {};
  }

 private:
  Error ends_in(const PlyElement& element, uint64_t row) const {
    return {ErrorCode::Dataset,
            fmt::format("{} ends at byte {}, inside row {} of the {} that element \"{}\" declares; "
                        "the file is cut off or its header is wrong",
                        file_, bytes_.size(), row, element.count, element.name)};
  }

  std::span<const std::byte> bytes_;
  size_t at_;
  const std::string& file_;
  bool big_endian_;
};

class AsciiCursor {
 public:
  AsciiCursor(std::span<const std::byte> bytes, const PlyHeader& header, const std::string& file)
      : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
        at_(header.body_offset),
        line_(header.n_lines + 1),
        file_(file) {}

  Result<void> skip(const PlyElement& element) {
    if (element.properties.empty()) return {};
    std::vector<double> values(element.properties.size());
    for (uint64_t row = 0; row < element.count; ++row) MILLRACE_TRY(next(element, row, values));
    return {};
  }

  Result<void> next(const PlyElement& element, uint64_t row, std::vector<double>& values) {
    for (size_t i = 0; i < element.properties.size(); ++i) {
      MILLRACE_ASSIGN(values[i], number(element, row, element.properties[i]));
      if (!element.properties[i].is_list) continue;
      const double length = values[i];
      if (!(length >= 0) || length > static_cast<double>(text_.size())) {
        return fail(fmt::format("{} is not the length of a list", length));
      }
      for (uint64_t k = 0; k < static_cast<uint64_t>(length); ++k) {
        MILLRACE_TRY(number(element, row, element.properties[i]));
      }
      values[i] = 0;
    }
    return {};
  }

 private:
  Result<double> number(const PlyElement& element, uint64_t row, const PlyProperty& property) {
    while (at_ < text_.size() && is_space(text_[at_])) {
      if (text_[at_] == '\n') ++line_;
      ++at_;
    }
    if (at_ == text_.size()) {
      return fail(fmt::format("the file ends inside row {} of the {} that element \"{}\" declares",
                              row, element.count, element.name));
    }
    const size_t start = at_;
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    std::string_view word = text_.substr(start, at_ - start);
    std::string shown(word.substr(0, 40));
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < 33 || c > 126; }, '?');
    if (word.size() > 1 && word[0] == '+') word.remove_prefix(1);
    double value = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool whole = parsed.ptr == word.data() + word.size();
    if (whole && parsed.ec == std::errc()) return value;
    // Printed denormals such as 1e-320 are out of from_chars' range on some libraries; they are
    // zero.
    if (whole && parsed.ec == std::errc::result_out_of_range && word.find("e-") != word.npos) {
      return 0.0;
    }
    return fail(fmt::format("\"{}\" is not a number (property {} of element \"{}\", row {})", shown,
                            property.name, element.name, row));
  }

  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

  Error fail(const std::string& what) const {
    return {ErrorCode::Dataset, fmt::format("{}, line {}: {}", file_, line_, what)};
  }

  std::string_view text_;
  size_t at_;
  uint64_t line_;
  const std::string& file_;
};

template <class Cursor>
Result<void> read_rows(Cursor cursor, const PlyHeader& header, const PlyElement& element,
                       const std::function<void(uint64_t, std::span<const double>)>& take) {
  for (const PlyElement& other : header.elements) {
    if (&other == &element) break;
    MILLRACE_TRY(cursor.skip(other));
  }
  std::vector<double> values(element.properties.size());
  for (uint64_t row = 0; row < element.count; ++row) {
    MILLRACE_TRY(cursor.next(element, row, values));
    take(row, values);
  }
  return {};
}

}  // namespace

Result<void> check_ply_body_size(std::span<const std::byte> bytes, const PlyHeader& header,
                                 const std::string& file) {
  const bool ascii = header.format == PlyFormat::Ascii;
  // The last ascii number needs no separator after it.
  uint64_t left = bytes.size() - header.body_offset + (ascii ? 1 : 0);
  for (const PlyElement& element : header.elements) {
    const uint64_t row_bytes = ascii ? 2 * element.properties.size() : element.min_row_bytes();
    if (row_bytes == 0) continue;
    if (element.count > left / row_bytes) {
      return Error{ErrorCode::Dataset,
                   fmt::format("{} ends at byte {}: element \"{}\" declares {} rows of at least {} "
                               "bytes, and there is room for {}; the file is cut off or its header "
                               "is wrong",
                               file, bytes.size(), element.name, element.count, row_bytes,
                               left / row_bytes)};
    }
    left -= element.count * row_bytes;
  }
  return {};
}

Result<void> read_ply_rows(std::span<const std::byte> bytes, const PlyHeader& header,
                           const PlyElement& element, const std::string& file,
                           const std::function<void(uint64_t, std::span<const double>)>& take) {
  if (header.format == PlyFormat::Ascii) {
    return read_rows(AsciiCursor(bytes, header, file), header, element, take);
  }
  return read_rows(BinaryCursor(bytes, header, file), header, element, take);
}

}  // namespace millrace
