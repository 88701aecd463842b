// Amounts of memory as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// "512.3 MiB" or "4.21 GiB".
std::string memory_text(uint64_t bytes);

}  // namespace millrace
