// The values of settings as text: what flags, and strings in a configuration file, may say.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/options.h"

namespace millrace {

/// What a setting of this type (and key, where one is special) takes, for "expected ...".
std::string expected_form(std::string_view key, bool);
std::string expected_form(std::string_view key, int);
std::string expected_form(std::string_view key, uint32_t);
std::string expected_form(std::string_view key, uint64_t);
std::string expected_form(std::string_view key, double);
std::string expected_form(std::string_view key, const std::string&);
std::string expected_form(std::string_view key, const std::array<float, 3>&);
std::string expected_form(std::string_view key, const std::vector<std::string>&);
std::string expected_form(std::string_view key, const std::vector<uint32_t>&);
std::string expected_form(std::string_view key, const std::vector<ForcedCapacity>&);

/// Reads `value` from the texts of a flag, in the order in which they were given: a single value
/// takes the last, a list takes all of them. False, and `value` as it was, if a text does not have
/// the expected form. Ranges are checked_options' concern.
using Texts = std::span<const std::string>;
bool value_from_texts(std::string_view key, Texts texts, bool& value);
bool value_from_texts(std::string_view key, Texts texts, int& value);
bool value_from_texts(std::string_view key, Texts texts, uint32_t& value);
bool value_from_texts(std::string_view key, Texts texts, uint64_t& value);
bool value_from_texts(std::string_view key, Texts texts, double& value);
bool value_from_texts(std::string_view key, Texts texts, std::string& value);
bool value_from_texts(std::string_view key, Texts texts, std::array<float, 3>& value);
bool value_from_texts(std::string_view key, Texts texts, std::vector<std::string>& value);
bool value_from_texts(std::string_view key, Texts texts, std::vector<uint32_t>& value);
bool value_from_texts(std::string_view key, Texts texts, std::vector<ForcedCapacity>& value);

/// Sets the setting `key` of visit_options from the texts of its flag. Errors: Usage naming the
/// flag, what was expected and what was found; Internal for a key that does not exist.
Result<void> set_option(TrainOptions& options, const std::string& key, Texts texts);

/// Whether the value of `key` is a number of bytes, which may have a unit.
bool is_bytes_key(std::string_view key);

/// Whether the value of `key` is a number of steps that may be "auto".
bool has_auto_steps(std::string_view key);

/// "--max-cap" for "max_cap".
std::string flag_of_key(std::string_view key);

}  // namespace millrace
