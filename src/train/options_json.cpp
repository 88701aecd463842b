// Settings as JSON: the effective configuration of a run, and configuration files.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "train/near_match.h"
#include "train/option_values.h"
#include "train/strategy_options.h"
#include "train/trainer.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

// ---- Values to JSON -----------------------------------------------------------------------------

template <class T>
Json to_json_value(std::string_view, const T& value) {
  return value;
}

Json to_json_value(std::string_view key, uint32_t value) {
  if (has_auto_steps(key) && value == kAutoSteps) return "auto";
  return value;
}

/// The double with the fewest digits that reads back as `value`: 0.1, not 0.10000000149011612.
double shortest_double(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  double number = value;
  if (error == std::errc()) std::from_chars(text, end, number);
  return static_cast<float>(number) == value ? number : static_cast<double>(value);
}

Json to_json_value(std::string_view, const std::array<float, 3>& color) {
  return Json::array(
      {shortest_double(color[0]), shortest_double(color[1]), shortest_double(color[2])});
}

Json to_json_value(std::string_view, const std::vector<ForcedCapacity>& forced) {
  Json array = Json::array();
  for (const ForcedCapacity& f : forced) array.push_back(fmt::format("{}@{}", f.capacity, f.step));
  return array;
}

// ---- Values from JSON: false if the value has another form than expected_form() says
// ----------------

bool text_value(std::string_view key, const Json& json, auto& value) {
  const std::string text = json.get<std::string>();
  return value_from_texts(key, Texts(&text, 1), value);
}

bool from_json_value(std::string_view, const Json& json, bool& value) {
  if (json.is_boolean()) value = json.get<bool>();
  return json.is_boolean();
}

bool from_json_value(std::string_view, const Json& json, std::string& value) {
  if (json.is_string()) value = json.get<std::string>();
  return json.is_string();
}

bool from_json_value(std::string_view, const Json& json, double& value) {
  if (json.is_number()) value = json.get<double>();
  return json.is_number();
}

/// Whole numbers, 3e4 included. The bounds of T are exact as doubles or rounded up by one.
template <class T>
bool whole_value(const Json& json, T& value) {
  if (json.is_number_unsigned()) {
    const uint64_t number = json.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<T>::max())) return false;
    value = static_cast<T>(number);
    return true;
  }
  if (json.is_number_integer()) {  // negative
    const int64_t number = json.get<int64_t>();
    if (std::is_unsigned_v<T> || number < static_cast<int64_t>(std::numeric_limits<T>::min())) {
      return false;
    }
    value = static_cast<T>(number);
    return true;
  }
  if (!json.is_number_float()) return false;
  const double number = json.get<double>();
  if (number != std::floor(number) || std::abs(number) > 9007199254740992.0) return false;
  if (number < static_cast<double>(std::numeric_limits<T>::min()) ||
      number > static_cast<double>(std::numeric_limits<T>::max())) {
    return false;
  }
  value = static_cast<T>(number);
  return true;
}

bool from_json_value(std::string_view, const Json& json, int& value) {
  return whole_value(json, value);
}

bool from_json_value(std::string_view key, const Json& json, uint32_t& value) {
  if (json.is_string() && (key == "resize_factor" || has_auto_steps(key)))
    return text_value(key, json, value);
  return whole_value(json, value);
}

bool from_json_value(std::string_view key, const Json& json, uint64_t& value) {
  if (json.is_string() && is_bytes_key(key)) return text_value(key, json, value);
  return whole_value(json, value);
}

bool from_json_value(std::string_view key, const Json& json, std::array<float, 3>& value) {
  if (json.is_string()) return text_value(key, json, value);
  if (!json.is_array() || json.size() != 3) return false;
  std::string text;
  for (const Json& channel : json) {
    if (!channel.is_number()) return false;
    text += (text.empty() ? "" : ",") + channel.dump();
  }
  return value_from_texts(key, Texts(&text, 1), value);
}

bool from_json_value(std::string_view key, const Json& json, std::vector<std::string>& value) {
  if (json.is_string()) return text_value(key, json, value);
  if (!json.is_array()) return false;
  std::vector<std::string> names;
  for (const Json& name : json) {
    if (!name.is_string()) return false;
    names.push_back(name.get<std::string>());
  }
  value = std::move(names);
  return true;
}

bool from_json_value(std::string_view key, const Json& json, std::vector<uint32_t>& value) {
  if (json.is_string()) return text_value(key, json, value);
  if (!json.is_array()) return false;
  std::vector<uint32_t> steps;
  for (const Json& step : json) {
    if (!whole_value(step, steps.emplace_back())) return false;
  }
  value = std::move(steps);
  return true;
}

bool from_json_value(std::string_view key, const Json& json, std::vector<ForcedCapacity>& value) {
  std::vector<std::string> texts;
  if (!from_json_value(key, json, texts)) return false;
  return value_from_texts(key, texts, value);
}

// ---- Places in the file -------------------------------------------------------------------------

/// "FILE:LINE:COLUMN" of a byte of `text`, both from 1.
std::string place(const std::string& file_name, std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}:{}", file_name, line, before.size() - line_start + 1);
}

/// Where the member `key` stands. A nested object could hold the same word first, but no setting is
/// an object.
std::string place_of_key(const std::string& file_name, std::string_view text,
                         const std::string& key) {
  const std::string quoted = Json(key).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at = text.find(quoted); at != std::string_view::npos;
       at = text.find(quoted, at + 1)) {
    const size_t next = text.find_first_not_of(" \t\r\n", at + quoted.size());
    if (next != std::string_view::npos && text[next] == ':') return place(file_name, text, at);
  }
  return file_name;
}

/// What the parser says after "parse error at line L, column C: ".
std::string parse_complaint(std::string_view what) {
  const size_t column = what.find(", column ");
  const size_t colon = column == std::string_view::npos ? what.find("] ") : what.find(": ", column);
  return std::string(colon == std::string_view::npos ? what : what.substr(colon + 2));
}

Result<Json> parse_json(const std::string& text, const std::string& file_name) {
  try {
    return Json::parse(text, nullptr, true, true);
  } catch (const nlohmann::json::parse_error& error) {
    const size_t byte = error.byte > 0 ? error.byte - 1 : 0;
    return Error{ErrorCode::Usage,
                 fmt::format("{}: not valid JSON: {}", place(file_name, text, byte),
                             parse_complaint(error.what()))};
  }
}

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

std::string options_to_json(const TrainOptions& options) {
  Json json;
  json["dataset"] = options.dataset;
  TrainOptions copy = options;  // visit_options hands out references that may be written
  visit_options(copy, [&](const char* key, auto& member, const char*, const char*) {
    json[key] = to_json_value(key, member);
  });
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Result<TrainOptions> options_from_json(const std::string& text, const std::string& file_name,
                                       const TrainOptions& base) {
  MILLRACE_ASSIGN(const Json json, parse_json(text, file_name));
  if (!json.is_object()) {
    return Error{ErrorCode::Usage,
                 fmt::format("{}: expected an object such as {{\"iterations\": 7000}}, found {}",
                             file_name, shown(json))};
  }
  TrainOptions options = base;
  // The strategy first: its defaults give way to what the file says.
  if (const auto found = json.find("strategy"); found != json.end() && found->is_string()) {
    use_strategy(options, found->get<std::string>());
  }
  std::vector<std::string> keys = {"dataset"};
  visit_options(options,
                [&](const char* key, auto&, const char*, const char*) { keys.emplace_back(key); });
  for (const auto& [key, value] : json.items()) {
    std::string complaint;
    const auto read = [&, &key = key, &value = value](const char* name, auto& member, const char*,
                                                      const char*) {
      if (key != name || from_json_value(key, value, member)) return;
      complaint = fmt::format("expected {}, found {}", expected_form(key, member), shown(value));
    };
    if (std::ranges::find(keys, key) == keys.end()) {
      complaint = "there is no such setting" + did_you_mean(key, keys);
    } else {
      read("dataset", options.dataset, "", "");
      visit_options(options, read);
    }
    if (!complaint.empty()) {
      return Error{
          ErrorCode::Usage,
          fmt::format("{}: \"{}\": {}", place_of_key(file_name, text, key), key, complaint)};
    }
  }
  options.strategy = canonical_strategy(options.strategy);
  return options;
}

}  // namespace millrace
