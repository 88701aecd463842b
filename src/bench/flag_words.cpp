// Cutting and joining words with quotes.
#include "bench/flag_words.h"

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

Error bad_text(std::string_view text, const std::string& what, size_t at) {
  return {ErrorCode::Usage, fmt::format("{} at character {} of '{}'", what, at + 1, text)};
}

}  // namespace

Result<std::vector<std::string>> split_flag_words(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;  // ' or " while inside
  size_t quote_at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && kBlanks.find(c) != std::string_view::npos) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      quote_at = i;
    } else if (c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'') {
      if (i + 1 == text.size()) return bad_text(text, "nothing follows the backslash", i);
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) return bad_text(text, fmt::format("the quote {} is not closed", quote), quote_at);
  return words;
}

std::string join_flag_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    const bool plain =
        !word.empty() && word.find_first_of(" \t\r\n'\"\\$`!*?&|;<>()#~") == std::string::npos;
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace millrace
