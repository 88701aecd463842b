// Reading edits and looking them up.
#include "train/edit_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "train/near_match.h"
#include "train/option_values.h"

namespace millrace {
namespace {

using Json = nlohmann::json;

const std::string kKeys[] = {"step",  "bg_color", "max_cap", "crop_box",
                             "pause", "save",     "eval",    "stop"};

// One line of the file.
class Line {
 public:
  Line(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  Error fail(const std::string& what) const { return {ErrorCode::Usage, place_ + ": " + what}; }

  Result<uint64_t> count(const char* key, uint64_t least, uint64_t most) const {
    const Json& value = json_.at(key);
    if (!value.is_number_unsigned() || value.get<uint64_t>() < least ||
        value.get<uint64_t>() > most) {
      return fail(fmt::format("\"{}\" is {}, not a whole number from {} to {}", key, value.dump(),
                              least, most));
    }
    return value.get<uint64_t>();
  }

  Result<bool> flag(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return false;
    if (!found->is_boolean()) {
      return fail(fmt::format("\"{}\" is {}, not true or false", key, found->dump()));
    }
    return found->get<bool>();
  }

  Result<double> seconds(const char* key) const {
    constexpr double kMost = 7 * 24 * 3600;
    const Json& value = json_.at(key);
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= kMost)) {
      return fail(fmt::format("\"{}\" is {}, not a number of seconds from 0 to {}", key,
                              value.dump(), kMost));
    }
    return value.get<double>();
  }

  Result<std::array<float, 3>> color(const char* key) const {
    const Json& value = json_.at(key);
    std::array<float, 3> color;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    // An array of three numbers reads as r,g,b.
    const std::string inside =
        value.is_array() && text.size() > 2 ? text.substr(1, text.size() - 2) : text;
    if (!value_from_texts(key, Texts(&inside, 1), color)) {
      return fail(
          fmt::format("\"{}\" is {}; expected {}", key, value.dump(), expected_form(key, color)));
    }
    return color;
  }

  Result<Edit> edit(uint32_t iterations) const {
    if (!json_.is_object()) return fail("not an object such as {\"step\": 120, \"save\": true}");
    for (const auto& [key, value] : json_.items()) {
      if (std::ranges::find(kKeys, key) == std::end(kKeys)) {
        return fail(fmt::format("unknown key \"{}\"{}", key, did_you_mean(key, kKeys)));
      }
    }
    if (!json_.contains("step")) return fail("\"step\" is missing");
    Edit edit;
    MILLRACE_ASSIGN(const uint64_t step, count("step", 0, iterations));
    edit.step = static_cast<uint32_t>(step);
    if (json_.contains("bg_color")) {
      MILLRACE_ASSIGN(edit.bg_color, color("bg_color"));
    }
    if (json_.contains("max_cap")) {
      MILLRACE_ASSIGN(edit.max_cap, count("max_cap", 1, ~0u));
    }
    if (const auto box = json_.find("crop_box"); box != json_.end()) {
      edit.crop_box.emplace();
      if (!box->is_null()) {
        MILLRACE_ASSIGN(*edit.crop_box, parse_crop_box(box->dump(), place_ + ": \"crop_box\""));
      }
    }
    if (json_.contains("pause")) {
      MILLRACE_ASSIGN(edit.pause_seconds, seconds("pause"));
    }
    MILLRACE_ASSIGN(edit.save, flag("save"));
    MILLRACE_ASSIGN(edit.eval, flag("eval"));
    MILLRACE_ASSIGN(edit.stop, flag("stop"));
    return edit;
  }

 private:
  const Json& json_;
  std::string place_;
};

}  // namespace

Result<EditLog> EditLog::read(const std::string& path, uint32_t iterations) {
  MILLRACE_ASSIGN(const std::string text, read_text_file(path));
  EditLog log;
  std::istringstream lines(text);
  std::string line;
  for (uint32_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const std::string place = fmt::format("--commands {}, line {}", path, number);
    if (json.is_discarded()) return Error{ErrorCode::Usage, place + ": not a line of JSON"};
    MILLRACE_ASSIGN(const Edit edit, Line(json, place).edit(iterations));
    log.add(edit);
  }
  return log;
}

Result<EditLog> EditLog::of_settings(const TrainOptions& options) {
  EditLog log;
  if (!options.crop_box.empty()) {
    Edit edit;
    MILLRACE_ASSIGN(edit.crop_box.emplace(), crop_box_of_setting(options.crop_box));
    log.add(edit);
  }
  if (options.commands.empty()) return log;
  MILLRACE_ASSIGN(const EditLog from_file, read(options.commands, options.iterations));
  for (const Edit& edit : from_file.edits()) log.add(edit);
  return log;
}

void EditLog::add(const Edit& edit) {
  const auto after = std::ranges::upper_bound(edits_, edit.step, {}, &Edit::step);
  edits_.insert(after, edit);
}

std::array<float, 3> EditLog::bg_color(uint32_t step, const std::array<float, 3>& otherwise) const {
  std::array<float, 3> color = otherwise;
  for (const Edit& edit : edits_) {
    if (edit.step <= step) color = edit.bg_color.value_or(color);
  }
  return color;
}

double EditLog::pause_seconds(uint32_t step) const {
  double seconds = 0;
  for (const Edit& edit : edits_) {
    if (edit.step == step) seconds = edit.pause_seconds.value_or(seconds);
  }
  return seconds;
}

uint64_t EditLog::max_cap(uint32_t step, uint64_t otherwise) const {
  uint64_t cap = otherwise;
  for (const Edit& edit : edits_) {
    if (edit.step <= step) cap = edit.max_cap.value_or(cap);
  }
  return cap;
}

std::optional<CropBox> EditLog::crop_box(uint32_t step) const {
  std::optional<CropBox> box;
  for (const Edit& edit : edits_) {
    if (edit.step <= step) box = edit.crop_box.value_or(box);
  }
  return box;
}

void EditLog::limit_max_cap(uint64_t max_cap) {
  for (Edit& edit : edits_) {
    if (edit.max_cap) edit.max_cap = std::min(*edit.max_cap, max_cap);
  }
}

}  // namespace millrace
