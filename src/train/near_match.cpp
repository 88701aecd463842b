// Edit distance (optimal string alignment) and the choice of suggestions.
#include "train/near_match.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

char folded(char c) {
  if (c == '_') return '-';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string folded(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = folded(c);
  return result;
}

std::string_view without_dashes(std::string_view name) {
  while (!name.empty() && name.front() == '-') name.remove_prefix(1);
  return name;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  const std::string x = folded(a), y = folded(b);
  std::vector<size_t> before_last(y.size() + 1), last(y.size() + 1), row(y.size() + 1);
  for (size_t j = 0; j <= y.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= x.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= y.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (x[i - 1] == y[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[y.size()];
}

std::vector<std::string> near_matches(std::string_view typed, std::span<const std::string> names,
                                      size_t limit) {
  // Names are long words of letters: without a length limit a hostile argument would cost its
  // square.
  const std::string_view word = without_dashes(typed).substr(0, 64);
  const size_t allowed = std::min<size_t>(3, std::max<size_t>(1, word.size() / 3));
  std::vector<std::pair<size_t, std::string>> found;
  for (const std::string& name : names) {
    const std::string_view candidate = without_dashes(name);
    const bool begins = word.size() >= 3 && folded(candidate).starts_with(folded(word));
    const size_t distance = edit_distance(word, candidate);
    if (distance <= allowed && distance < candidate.size()) {
      found.emplace_back(distance, name);
    } else if (begins) {
      found.emplace_back(allowed + 1, name);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (auto& [distance, name] : found) {
    if (result.size() == limit) break;
    result.push_back(std::move(name));
  }
  return result;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string> names) {
  const std::vector<std::string> near = near_matches(typed, names);
  if (near.empty()) return "";
  std::string text = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) {
    if (i > 0) text += i + 1 == near.size() ? " or " : ", ";
    text += near[i];
  }
  return text + "?";
}

}  // namespace millrace
