// Running a test binary once more on the simulated device, whose checks see what each kernel
// touches.
#pragma once

#include <cstdlib>
#include <string>

namespace millrace::simulated {

/// `id`, or, with MILLRACE_TEST_SIMULATED=CLOCK in the environment and a cpu device asked for, the
/// simulated device with all checks and that clock (held where the test wants a lazy device).
inline std::string test_device(const std::string& id) {
  const char* clock = std::getenv("MILLRACE_TEST_SIMULATED");
  if (clock == nullptr || !id.starts_with("cpu")) return id;
  const bool lazy = id.find("lazy") != std::string::npos;
  return std::string("simulated:checks,") + (lazy ? "hold" : clock);
}

}  // namespace millrace::simulated
