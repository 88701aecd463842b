// Whole-file reading and crash-safe writing (written aside, then renamed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace millrace {

/// Reads the whole of `path`. Errors (code `on_error`): missing, a directory, unreadable.
Result<std::vector<std::byte>> read_file(const std::filesystem::path& path,
                                         ErrorCode on_error = ErrorCode::Dataset);

/// As read_file, as text.
Result<std::string> read_text_file(const std::filesystem::path& path,
                                   ErrorCode on_error = ErrorCode::Dataset);

/// A file that is written piece by piece beside its path and takes its place at the end. Dropped
/// before that, it leaves nothing behind. Errors: Output (disk full, no permission).
class AtomicFile {
 public:
  /// Creates parent folders.
  static Result<AtomicFile> create(const std::filesystem::path& path);
  AtomicFile(AtomicFile&& other) noexcept
      : path_(std::move(other.path_)),
        aside_(std::move(other.aside_)),
        fd_(std::exchange(other.fd_, -1)) {}
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Result<void> write(std::span<const std::byte> bytes);
  /// Flushes, then renames over the path; nothing may be written afterwards.
  Result<void> commit();

 private:
  AtomicFile() = default;

  std::filesystem::path path_, aside_;
  int fd_ = -1;
};

/// Writes `bytes` beside `path` under a temporary name, flushes, then renames over `path`; creates
/// parent folders. On any error (disk full, no permission: ErrorCode::Output) `path` is untouched
/// and the temporary file is gone.
Result<void> write_file_atomically(const std::filesystem::path& path,
                                   std::span<const std::byte> bytes);
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace millrace
