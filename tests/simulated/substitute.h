// Running a test binary once more on another device than it names: the simulated one, whose checks
// see what each kernel touches, or any.
#pragma once

#include <cstdlib>
#include <string>

namespace millrace::simulated {

/// `id`, or, with MILLRACE_TEST_SIMULATED=CLOCK in the environment and a cpu device asked for, the
/// simulated device with all checks and that clock (held where the test wants a lazy device). With
/// MILLRACE_TEST_DEVICE=ID it is that device, but for tests that want a lazy one or a limit.
inline std::string test_device(const std::string& id) {
  if (!id.starts_with("cpu")) return id;
  const bool lazy = id.find("lazy") != std::string::npos;
  const char* device = std::getenv("MILLRACE_TEST_DEVICE");
  const bool limited = id.find("memory=") != std::string::npos;
  if (device != nullptr) return lazy || limited ? id : device;
  const char* clock = std::getenv("MILLRACE_TEST_SIMULATED");
  if (clock == nullptr) return id;
  return std::string("simulated:checks,") + (lazy ? "hold" : clock);
}

}  // namespace millrace::simulated
