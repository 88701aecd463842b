// The program's version; a test compares it with the project's in CMakeLists.txt.
#pragma once

namespace millrace {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace millrace
