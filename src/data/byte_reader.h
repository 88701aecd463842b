// ByteReader: walks a little-endian binary file and knows where it is when something is wrong.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace millrace {

/// Reads scalars in order. Call need() before get(); both move nothing on error.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, const std::filesystem::path& path)
      : bytes_(bytes), path_(path) {}

  uint64_t remaining() const { return bytes_.size() - offset_; }
  uint64_t offset() const { return offset_; }

  /// An error if fewer than `n_bytes` are left; `what` names what they would hold.
  Result<void> need(uint64_t n_bytes, std::string_view what) const {
    if (n_bytes <= remaining()) return {};
    return error(fmt::format("the file ends inside {} ({} bytes needed, {} left): it is truncated",
                             what, n_bytes, remaining()));
  }

  /// A count of records of at least `record_bytes` each; refused when the rest of the file cannot
  /// hold it.
  Result<uint64_t> read_count(uint64_t record_bytes, std::string_view what) {
    MILLRACE_TRY(need(8, fmt::format("the number of {}", what)));
    const uint64_t count = get<uint64_t>();
    if (count > remaining() / record_bytes) {
      return error(
          fmt::format("{} {} announced, but the {} bytes that follow cannot hold them: it is "
                      "truncated or corrupt",
                      count, what, remaining()));
    }
    return count;
  }

  template <class T>
  T get() {
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  void skip(uint64_t n_bytes) { offset_ += n_bytes; }

  /// A NUL-terminated string.
  Result<std::string> read_string(std::string_view what) {
    const char* begin = reinterpret_cast<const char*>(bytes_.data() + offset_);
    const void* end = remaining() ? std::memchr(begin, 0, remaining()) : nullptr;
    if (!end) return error(fmt::format("the file ends inside {}: it is truncated", what));
    std::string text(begin, static_cast<const char*>(end));
    offset_ += text.size() + 1;
    return text;
  }

  Error error(std::string_view what) const {
    return {ErrorCode::Dataset, fmt::format("{}: byte {}: {}", path_.string(), offset_, what)};
  }

 private:
  std::span<const std::byte> bytes_;
  std::filesystem::path path_;
  uint64_t offset_ = 0;
};

}  // namespace millrace
