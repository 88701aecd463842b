// Whole-file reading and crash-safe writing (written aside, then renamed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace millrace {

/// Reads the whole of `path`. Errors (code `on_error`): missing, a directory, unreadable.
Result<std::vector<std::byte>> read_file(const std::filesystem::path& path,
                                         ErrorCode on_error = ErrorCode::Dataset);

/// As read_file, as text.
Result<std::string> read_text_file(const std::filesystem::path& path,
                                   ErrorCode on_error = ErrorCode::Dataset);

/// Writes `bytes` beside `path` under a temporary name, flushes, then renames over `path`; creates
/// parent folders. On any error (disk full, no permission: ErrorCode::Output) `path` is untouched
/// and the temporary file is gone.
Result<void> write_file_atomically(const std::filesystem::path& path,
                                   std::span<const std::byte> bytes);
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace millrace
