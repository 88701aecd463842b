// Parsing of PLY headers.
#include "io/ply_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace millrace {
namespace {

// Longer lines do not occur in real headers; without a bound a binary file would be quoted whole.
constexpr size_t kMaxHeaderLine = 4096;

constexpr std::array<std::pair<std::string_view, PlyType>, 16> kTypeNames = {{
    {"char", PlyType::Int8},
    {"int8", PlyType::Int8},
    {"uchar", PlyType::Uint8},
    {"uint8", PlyType::Uint8},
    {"short", PlyType::Int16},
    {"int16", PlyType::Int16},
    {"ushort", PlyType::Uint16},
    {"uint16", PlyType::Uint16},
    {"int", PlyType::Int32},
    {"int32", PlyType::Int32},
    {"uint", PlyType::Uint32},
    {"uint32", PlyType::Uint32},
    {"float", PlyType::Float32},
    {"float32", PlyType::Float32},
    {"double", PlyType::Float64},
    {"float64", PlyType::Float64},
}};

std::optional<PlyType> type_of(std::string_view word) {
  for (const auto& [name, type] : kTypeNames) {
    if (name == word) return type;
  }
  return std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (true) {
    at = line.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) return words;
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
}

// Printable and short, so that a garbled header cannot spoil a terminal.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 60)) out += c >= 32 && c < 127 ? c : '?';
  return out + (text.size() > 60 ? "...\"" : "\"");
}

// The rest of `line` from `word`, a part of it, on; without blanks at its end.
std::string_view text_from(std::string_view line, std::string_view word) {
  const auto begin = static_cast<size_t>(word.data() - line.data());
  return line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
}

// One header being read, line by line.
class HeaderParser {
 public:
  explicit HeaderParser(const std::string& file) : file_(file) {}

  Result<void> take_line(std::string_view line) {
    ++header_.n_lines;
    const std::vector<std::string_view> words = words_of(line);
    if (header_.n_lines == 1) {
      if (words.size() != 1 || words[0] != "ply") {
        return fail(fmt::format("a PLY file begins with \"ply\", found {}", quoted(line)));
      }
      return {};
    }
    if (words.empty() || words[0] == "obj_info") return {};
    if (words[0] == "comment") {
      if (words.size() > 1) header_.comments.emplace_back(text_from(line, words[1]));
      return {};
    }
    if (words[0] == "format") return take_format(words, line);
    if (words[0] == "element") return take_element(words, line);
    if (words[0] == "property") return take_property(words, line);
    if (words[0] == "end_header") return take_end();
    return fail(fmt::format("unknown header line {}", quoted(line)));
  }

  bool done() const { return done_; }
  PlyHeader take_header() && { return std::move(header_); }

  Error fail(const std::string& what) const {
    return {ErrorCode::Dataset,
            fmt::format("{}, header line {}: {}", file_, header_.n_lines, what)};
  }

 private:
  using Words = std::vector<std::string_view>;

  Result<void> take_format(const Words& words, std::string_view line) {
    if (has_format_) return fail("a second format line");
    if (words.size() != 3 || words[2] != "1.0") {
      return fail(fmt::format("expected \"format <kind> 1.0\", found {}", quoted(line)));
    }
    if (words[1] == "ascii") {
      header_.format = PlyFormat::Ascii;
    } else if (words[1] == "binary_little_endian") {
      header_.format = PlyFormat::BinaryLittle;
    } else if (words[1] == "binary_big_endian") {
      header_.format = PlyFormat::BinaryBig;
    } else {
      return fail(fmt::format("unknown format {}", quoted(words[1])));
    }
    has_format_ = true;
    return {};
  }

  Result<void> take_element(const Words& words, std::string_view line) {
    if (words.size() != 3) {
      return fail(fmt::format("expected \"element <name> <count>\", found {}", quoted(line)));
    }
    PlyElement element;
    element.name = std::string(words[1]);
    const char* end = words[2].data() + words[2].size();
    const auto parsed = std::from_chars(words[2].data(), end, element.count);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return fail(fmt::format("{} is not a count", quoted(words[2])));
    }
    if (header_.find(element.name) != nullptr) {
      return fail(fmt::format("a second element {}", quoted(words[1])));
    }
    header_.elements.push_back(std::move(element));
    return {};
  }

  Result<void> take_property(const Words& words, std::string_view line) {
    if (header_.elements.empty()) return fail("a property before any element");
    PlyProperty property;
    property.is_list = words.size() >= 2 && words[1] == "list";
    if (words.size() != (property.is_list ? 5u : 3u)) {
      return fail(
          fmt::format("expected \"property <type> <name>\" or \"property list <type> <type> "
                      "<name>\", found {}",
                      quoted(line)));
    }
    const std::optional<PlyType> type = type_of(words[property.is_list ? 3 : 1]);
    if (!type) return fail(fmt::format("unknown type in {}", quoted(line)));
    property.type = *type;
    if (property.is_list) {
      const std::optional<PlyType> count_type = type_of(words[2]);
      if (!count_type || *count_type >= PlyType::Float32) {
        return fail(fmt::format("a list's length needs an integer type, found {}", quoted(line)));
      }
      property.count_type = *count_type;
    }
    property.name = std::string(words.back());
    PlyElement& element = header_.elements.back();
    if (element.find(property.name) >= 0) {
      return fail(fmt::format("a second property {}", quoted(property.name)));
    }
    element.properties.push_back(std::move(property));
    return {};
  }

  Result<void> take_end() {
    if (!has_format_) return fail("the header ends without a format line");
    done_ = true;
    return {};
  }

  const std::string& file_;
  PlyHeader header_;
  bool has_format_ = false;
  bool done_ = false;
};

}  // namespace

size_t ply_type_bytes(PlyType type) {
  constexpr std::array<size_t, 8> kBytes = {1, 1, 2, 2, 4, 4, 4, 8};
  return kBytes[static_cast<size_t>(type)];
}

bool PlyElement::has_list() const {
  return std::any_of(properties.begin(), properties.end(),
                     [](const PlyProperty& property) { return property.is_list; });
}

uint64_t PlyElement::min_row_bytes() const {
  uint64_t bytes = 0;
  for (const PlyProperty& property : properties) {
    bytes += ply_type_bytes(property.is_list ? property.count_type : property.type);
  }
  return bytes;
}

int PlyElement::find(const std::string& property) const {
  for (size_t i = 0; i < properties.size(); ++i) {
    if (properties[i].name == property) return static_cast<int>(i);
  }
  return -1;
}

const PlyElement* PlyHeader::find(const std::string& element) const {
  for (const PlyElement& candidate : elements) {
    if (candidate.name == element) return &candidate;
  }
  return nullptr;
}

Result<PlyHeader> parse_ply_header(std::span<const std::byte> bytes, const std::string& file) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty()) return Error{ErrorCode::Dataset, fmt::format("{} is empty", file)};
  HeaderParser parser(file);
  size_t at = 0;
  while (!parser.done()) {
    const size_t end = text.substr(at, kMaxHeaderLine).find('\n');
    if (end == std::string_view::npos) {
      if (at == 0 && text.substr(0, 3) != "ply") {
        return Error{ErrorCode::Dataset, fmt::format("{} is not a PLY file: it begins with {}",
                                                     file, quoted(text.substr(0, 8)))};
      }
      return Error{
          ErrorCode::Dataset,
          fmt::format("{}: the PLY header has no end_header; it breaks off at byte {} of {}", file,
                      at, text.size())};
    }
    std::string_view line = text.substr(at, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    MILLRACE_TRY(parser.take_line(line));
    at += end + 1;
  }
  PlyHeader header = std::move(parser).take_header();
  header.body_offset = at;
  return header;
}

}  // namespace millrace
