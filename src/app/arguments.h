// Arguments: from the words of a command line to the texts given for each flag.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace millrace {

enum class FlagKind : uint8_t {
  Value,    // one text; the last one given counts
  Switch,   // no text: "true"; "--flag=false" takes it back
  Numbers,  // texts; numbers that follow as words of their own belong to it
  Text,     // one text, taken as it stands, even if it begins with dashes
};

/// One flag of a command.
struct Flag {
  std::string key;    // what ParsedArguments calls it
  std::string names;  // blank-separated; the first long one is the name, the others are aliases
  std::string help;
  FlagKind kind = FlagKind::Value;
  std::string value_name = {};    // in help: DIR, N
  std::string default_text = {};  // in help; empty = none
  size_t most_numbers = SIZE_MAX;
};

/// "--max-cap", or the short name if there is no long one.
std::string main_name(const Flag& flag);
/// All names of `flag`.
std::vector<std::string> all_names(const Flag& flag);

/// What was given, in the words of the command line.
struct ParsedArguments {
  std::map<std::string, std::vector<std::string>> values;  // by key; only flags that were given
  std::vector<std::string> positionals;

  bool has(const std::string& key) const { return values.contains(key); }
  /// The last text of `key`, or `otherwise`.
  std::string text(const std::string& key, const std::string& otherwise = "") const;
  /// Whether the switch `key` is on.
  bool is_on(const std::string& key) const;
};

/// `word` with dashes for underscores in a long flag's name: "--max_cap=5" becomes "--max-cap=5".
std::string with_dashes(const std::string& word);

/// Whether `word` stands among `words` as a flag, before any "--".
bool has_flag(const std::vector<std::string>& words, const std::string& word);

/// Reads `words` (without program and command). Errors: Usage, naming the flag; an unknown flag
/// comes with the nearest known ones.
Result<ParsedArguments> parse_arguments(const std::vector<Flag>& flags,
                                        const std::vector<std::string>& words);

}  // namespace millrace
