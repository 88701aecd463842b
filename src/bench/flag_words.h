// Flags that were given as one text ("--device cpu:1 --images 'my photos'"), as words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace millrace {

/// The words of `text` as a shell would cut them: at blanks, except within '...' or "..." or after
/// a backslash (within '...' a backslash is itself). Nothing is expanded. Errors: Usage for a quote
/// that is not closed or a backslash at the end, naming its place.
Result<std::vector<std::string>> split_flag_words(std::string_view text);

/// `words` as one line that a shell would cut into the same words again.
std::string join_flag_words(const std::vector<std::string>& words);

}  // namespace millrace
