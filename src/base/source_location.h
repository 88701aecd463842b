// SourceLocation: std::source_location, also for clang up to 15, which cannot read libstdc++'s.
#pragma once

#include <cstdint>
#include <source_location>

namespace millrace {

#if defined(__cpp_lib_source_location)
using SourceLocation = std::source_location;
#else
/// The part of std::source_location that this program uses.
class SourceLocation {
 public:
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          uint32_t line = __builtin_LINE()) {
    SourceLocation location;
    location.file_ = file;
    location.line_ = line;
    return location;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr uint32_t line() const { return line_; }

 private:
  const char* file_ = "";
  uint32_t line_ = 0;
};
#endif

}  // namespace millrace
