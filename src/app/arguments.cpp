// Command lines: our spelling rules first, then CLI11 for the words.
#include "app/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "data/text_fields.h"
#include "train/near_match.h"

namespace millrace {
namespace {

/// Letters after one dash are a short flag; "-1" and "-.5" are numbers, "-" is a file name.
bool looks_like_flag(const std::string& word) {
  return word.size() >= 2 && word[0] == '-' && !parse_double(word);
}

const Flag* find_flag(const std::vector<Flag>& flags, const std::string& name) {
  for (const Flag& flag : flags) {
    const std::vector<std::string> names = all_names(flag);
    if (std::ranges::find(names, name) != names.end()) return &flag;
  }
  return nullptr;
}

/// "--eval-steps 100 200 x" becomes "--eval-steps 100,200 x", so that a flag never swallows a
/// dataset.
std::vector<std::string> with_joined_numbers(const std::vector<Flag>& flags,
                                             const std::vector<std::string>& words) {
  std::vector<std::string> joined;
  for (size_t i = 0; i < words.size(); ++i) {
    joined.push_back(words[i]);
    const Flag* flag = find_flag(flags, words[i]);
    if (!flag || flag->kind != FlagKind::Numbers || i + 1 == words.size()) continue;
    joined.push_back(words[++i]);
    if (!parse_double(words[i])) continue;
    for (size_t n = 1; n < flag->most_numbers && i + 1 < words.size() && parse_double(words[i + 1]);
         ++n) {
      joined.back() += "," + words[++i];
    }
  }
  return joined;
}

Error usage(std::string message) { return {ErrorCode::Usage, std::move(message)}; }

/// Moves the flags of FlagKind::Text and their texts from `words` to `parsed`: no other rule may
/// look into such a text.
Result<void> take_texts(const std::vector<Flag>& flags, std::vector<std::string>& words,
                        ParsedArguments& parsed) {
  std::vector<std::string> others;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string name = with_dashes(words[i]).substr(0, equals);
    const Flag* flag = find_flag(flags, name);
    if (!flag || flag->kind != FlagKind::Text) {
      others.push_back(words[i]);
    } else if (equals != std::string::npos) {
      parsed.values[flag->key].push_back(words[i].substr(equals + 1));
    } else if (i + 1 == words.size()) {
      return usage(fmt::format("{} needs a value", name));
    } else {
      parsed.values[flag->key].push_back(words[++i]);
    }
  }
  words = std::move(others);
  return {};
}

}  // namespace

std::vector<std::string> all_names(const Flag& flag) {
  std::istringstream stream(flag.names);
  std::vector<std::string> names;
  for (std::string name; stream >> name;) names.push_back(name);
  return names;
}

std::string main_name(const Flag& flag) {
  const std::vector<std::string> names = all_names(flag);
  for (const std::string& name : names) {
    if (name.starts_with("--")) return name;
  }
  return names.empty() ? "" : names.front();
}

std::string ParsedArguments::text(const std::string& key, const std::string& otherwise) const {
  const auto found = values.find(key);
  return found == values.end() || found->second.empty() ? otherwise : found->second.back();
}

bool ParsedArguments::is_on(const std::string& key) const {
  const std::string value = text(key, "false");
  return value == "true" || value == "1" || value == "on" || value == "yes";
}

std::string with_dashes(const std::string& word) {
  if (!word.starts_with("--")) return word;
  std::string result = word;
  std::replace(result.begin(),
               result.begin() + static_cast<long>(std::min(word.find('='), word.size())), '_', '-');
  return result;
}

bool has_flag(const std::vector<std::string>& words, const std::string& word) {
  for (const std::string& candidate : words) {
    if (candidate == "--") return false;
    if (with_dashes(candidate) == word) return true;
  }
  return false;
}

Result<ParsedArguments> parse_arguments(const std::vector<Flag>& flags,
                                        const std::vector<std::string>& words) {
  // What follows "--" is no flag, whatever it looks like.
  const auto end_of_flags = std::ranges::find(words, "--");
  std::vector<std::string> spelt(words.begin(), end_of_flags);
  ParsedArguments parsed;
  MILLRACE_TRY(take_texts(flags, spelt, parsed));
  for (std::string& word : spelt) word = with_dashes(word);
  spelt = with_joined_numbers(flags, spelt);

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<CLI::Option*> options;
  std::vector<std::string> known;
  for (const Flag& flag : flags) {
    std::string names;
    for (const std::string& name : all_names(flag)) {
      names += (names.empty() ? "" : ",") + name;
      if (name.starts_with("--")) known.push_back(name);
    }
    CLI::Option* option =
        flag.kind == FlagKind::Switch ? app.add_flag(names) : app.add_option(names);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    options.push_back(option);
  }
  known.emplace_back("--help");
  try {
    app.parse(std::vector<std::string>(spelt.rbegin(), spelt.rend()));
  } catch (const CLI::ParseError& error) {
    return usage(error.what());
  }

  for (const std::string& word : app.remaining()) {
    if (looks_like_flag(word)) {
      const std::string name = word.substr(0, word.find('='));
      return usage(fmt::format("there is no flag {}{}", name, did_you_mean(name, known)));
    }
    parsed.positionals.push_back(word);
  }
  if (end_of_flags != words.end()) {
    parsed.positionals.insert(parsed.positionals.end(), end_of_flags + 1, words.end());
  }
  for (size_t i = 0; i < flags.size(); ++i) {
    if (options[i]->count() == 0) continue;
    const std::vector<std::string>& texts = options[i]->results();
    for (const std::string& text : texts) {
      // CLI11 gives a flag its value without looking: "--output --overwrite".
      if (flags[i].kind != FlagKind::Switch && text.starts_with("--")) {
        return usage(fmt::format("{} needs a value, but {} follows (write {}={} if it is meant)",
                                 main_name(flags[i]), text, main_name(flags[i]), text));
      }
      const bool known_switch = text == "true" || text == "false" || text == "1" || text == "0" ||
                                text == "on" || text == "off" || text == "yes" || text == "no";
      if (flags[i].kind == FlagKind::Switch && !known_switch) {
        return usage(
            fmt::format("{}: expected true or false, found '{}'", main_name(flags[i]), text));
      }
    }
    parsed.values[flags[i].key] = texts;
  }
  return parsed;
}

}  // namespace millrace
