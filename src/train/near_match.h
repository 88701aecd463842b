// Near matches: what a person who misspelt a name may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`; letter case and the
/// difference of '-' and '_' are free.
size_t edit_distance(std::string_view a, std::string_view b);

/// Up to `limit` of `names` near `typed`, nearest first: at most a third of its letters (and at
/// most 3) are wrong, or `typed` (3 letters or more) is how the name begins.
std::vector<std::string> near_matches(std::string_view typed, std::span<const std::string> names,
                                      size_t limit = 3);

/// "; did you mean a, b or c?" for the near matches of `typed`, or empty.
std::string did_you_mean(std::string_view typed, std::span<const std::string> names);

}  // namespace millrace
