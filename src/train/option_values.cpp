// Parsing of settings from text.
#include "train/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "data/text_fields.h"

namespace millrace {
namespace {

constexpr std::string_view kAuto = "auto";

/// The parts of all texts between commas, and blanks if `at_blanks`; empty parts are left out.
std::vector<std::string> split(Texts texts, bool at_blanks) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) {
    std::string part;
    const auto close = [&] {
      const std::string_view trimmed = trim(part);
      if (!trimmed.empty()) parts.emplace_back(trimmed);
      part.clear();
    };
    for (const char c : text) {
      if (c == ',' || (at_blanks && is_blank(c))) {
        close();
      } else {
        part += c;
      }
    }
    close();
  }
  return parts;
}

/// "4G", "512M", "64KiB", "1.5GB": powers of 1024.
std::optional<uint64_t> parse_bytes(std::string_view text) {
  text = trim(text);
  size_t end = text.size();
  while (end > 0 && !(text[end - 1] >= '0' && text[end - 1] <= '9')) --end;
  std::string unit(text.substr(end));
  for (char& c : unit) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  if (unit.ends_with("IB")) {
    unit.resize(unit.size() - 2);
  } else if (unit.ends_with("B")) {
    unit.pop_back();
  }
  constexpr std::string_view kUnits = "KMGT";
  int shift = 0;
  if (!unit.empty()) {
    const size_t power = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
    if (power == std::string_view::npos) return std::nullopt;
    shift = 10 * static_cast<int>(power + 1);
  }
  const std::string_view number = text.substr(0, end);
  if (const auto whole = parse_integer<uint64_t>(number)) {
    if (shift > 0 && *whole > (~uint64_t{0} >> shift)) return std::nullopt;
    return *whole << shift;
  }
  const auto value = parse_double(number);
  if (!value || shift == 0 || !(*value >= 0)) return std::nullopt;
  const double bytes = std::ldexp(*value, shift);
  if (!(bytes < 9.2e18)) return std::nullopt;
  return static_cast<uint64_t>(std::llround(bytes));
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// The digits after '#': three, or six.
std::optional<std::array<float, 3>> parse_hex_color(std::string_view digits) {
  if (digits.size() != 3 && digits.size() != 6) return std::nullopt;
  const size_t per_channel = digits.size() / 3;
  std::array<float, 3> color{};
  for (size_t c = 0; c < 3; ++c) {
    const auto high = hex_digit(digits[c * per_channel]);
    const auto low = hex_digit(digits[c * per_channel + per_channel - 1]);
    if (!high || !low) return std::nullopt;
    color[c] = static_cast<float>(16 * *high + *low) / 255.0f;
  }
  return color;
}

/// Three numbers: 0 to 1, or whole numbers to 255 as soon as one is above 1.
std::optional<std::array<float, 3>> parse_number_color(Texts texts) {
  const std::vector<std::string> parts = split(texts, true);
  if (parts.size() != 3) return std::nullopt;
  std::array<double, 3> numbers{};
  for (size_t c = 0; c < 3; ++c) {
    const auto number = parse_double(parts[c]);
    if (!number || !std::isfinite(*number)) return std::nullopt;
    numbers[c] = *number;
  }
  const bool bytes = std::ranges::any_of(numbers, [](double x) { return x > 1; });
  std::array<float, 3> color{};
  for (size_t c = 0; c < 3; ++c) {
    const double x = numbers[c];
    if (x < 0 || (bytes && (x > 255 || x != std::floor(x)))) return std::nullopt;
    color[c] = static_cast<float>(bytes ? x / 255 : x);
  }
  return color;
}

template <class T>
bool whole_from_texts(Texts texts, T& value) {
  if (texts.empty()) return false;
  const auto parsed = parse_integer<T>(trim(texts.back()));
  if (parsed) value = *parsed;
  return parsed.has_value();
}

}  // namespace

bool is_bytes_key(std::string_view key) {
  return key.ends_with("_bytes") || key.ends_with("_budget");
}

bool has_auto_steps(std::string_view key) { return key == "grow_until" || key == "stop_refine"; }

std::string expected_form(std::string_view, bool) { return "true or false"; }
std::string expected_form(std::string_view, int) { return "a whole number"; }
std::string expected_form(std::string_view key, uint32_t) {
  if (key == "resize_factor") return "auto, 1, 2, 4 or 8";
  if (has_auto_steps(key)) return "auto or a whole number from 0 to 4294967294";
  return "a whole number from 0 to 4294967295";
}
std::string expected_form(std::string_view key, uint64_t) {
  return is_bytes_key(key) ? "a number of bytes such as 4294967296, 512M or 4G"
                           : "a whole number from 0 up";
}
std::string expected_form(std::string_view, double) { return "a number"; }
std::string expected_form(std::string_view, const std::string&) { return "text"; }
std::string expected_form(std::string_view, const std::array<float, 3>&) {
  return "a colour: #rrggbb, #rgb, white, black, or r,g,b (0 to 1, or whole numbers to 255)";
}
std::string expected_form(std::string_view, const std::vector<std::string>&) {
  return "names with commas between them";
}
std::string expected_form(std::string_view, const std::vector<uint32_t>&) {
  return "step numbers with commas between them";
}
std::string expected_form(std::string_view, const std::vector<ForcedCapacity>&) {
  return "N@S, the capacity and the step";
}

bool value_from_texts(std::string_view, Texts texts, bool& value) {
  if (texts.empty()) return false;
  const std::string& text = texts.back();
  const bool yes = text == "true" || text == "1" || text == "on" || text == "yes";
  const bool no = text == "false" || text == "0" || text == "off" || text == "no";
  if (yes || no) value = yes;
  return yes || no;
}

bool value_from_texts(std::string_view, Texts texts, int& value) {
  return whole_from_texts(texts, value);
}

bool value_from_texts(std::string_view key, Texts texts, uint32_t& value) {
  if (key == "resize_factor" && !texts.empty() && texts.back() == kAuto) {
    value = 0;
    return true;
  }
  if (has_auto_steps(key) && !texts.empty() && texts.back() == kAuto) {
    value = kAutoSteps;
    return true;
  }
  return whole_from_texts(texts, value);
}

bool value_from_texts(std::string_view key, Texts texts, uint64_t& value) {
  if (!is_bytes_key(key)) return whole_from_texts(texts, value);
  if (texts.empty()) return false;
  const auto bytes = parse_bytes(texts.back());
  if (bytes) value = *bytes;
  return bytes.has_value();
}

bool value_from_texts(std::string_view, Texts texts, double& value) {
  if (texts.empty()) return false;
  const auto number = parse_double(trim(texts.back()));
  if (number) value = *number;
  return number.has_value();
}

bool value_from_texts(std::string_view, Texts texts, std::string& value) {
  if (texts.empty()) return false;
  value = texts.back();
  return true;
}

bool value_from_texts(std::string_view, Texts texts, std::array<float, 3>& value) {
  if (texts.empty()) return false;
  const Texts last = texts.last(1);
  const std::string_view text = trim(last[0]);
  std::optional<std::array<float, 3>> color;
  if (text == "white") {
    color = {1, 1, 1};
  } else if (text == "black") {
    color = {0, 0, 0};
  } else if (text.starts_with('#')) {
    color = parse_hex_color(text.substr(1));
  } else {
    color = parse_number_color(last);
  }
  if (color) value = *color;
  return color.has_value();
}

bool value_from_texts(std::string_view, Texts texts, std::vector<std::string>& value) {
  value = split(texts, false);
  return true;
}

bool value_from_texts(std::string_view, Texts texts, std::vector<uint32_t>& value) {
  std::vector<uint32_t> steps;
  for (const std::string& part : split(texts, true)) {
    const auto step = parse_integer<uint32_t>(part);
    if (!step) return false;
    steps.push_back(*step);
  }
  value = std::move(steps);
  return true;
}

bool value_from_texts(std::string_view, Texts texts, std::vector<ForcedCapacity>& value) {
  std::vector<ForcedCapacity> forced;
  for (const std::string& part : split(texts, true)) {
    const size_t at = part.find('@');
    if (at == std::string::npos) return false;
    const auto capacity = parse_integer<uint64_t>(std::string_view(part).substr(0, at));
    const auto step = parse_integer<uint32_t>(std::string_view(part).substr(at + 1));
    if (!capacity || !step) return false;
    forced.push_back({*capacity, *step});
  }
  value = std::move(forced);
  return true;
}

Result<void> set_option(TrainOptions& options, const std::string& key, Texts texts) {
  bool found = false;
  Result<void> result;
  visit_options(options, [&](const char* name, auto& member, const char*, const char*) {
    if (key != name) return;
    found = true;
    if (value_from_texts(key, texts, member)) return;
    std::string given;
    for (const std::string& text : texts) given += (given.empty() ? "" : " ") + text;
    result = Error{ErrorCode::Usage, fmt::format("{}: expected {}, found '{}'", flag_of_key(key),
                                                 expected_form(key, member), given)};
  });
  if (!found) return Error{ErrorCode::Internal, "no setting is called " + key};
  return result;
}

std::string flag_of_key(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

}  // namespace millrace
