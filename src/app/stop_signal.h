// StopSignal: Ctrl-C as a flag that training looks at.
#pragma once

#include <atomic>

namespace millrace {

/// While it lives, the first SIGINT or SIGTERM sets a flag and says so on stderr; the second ends
/// the process at once with exit code 130. One at a time.
class StopSignal {
 public:
  explicit StopSignal(bool quiet);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  const std::atomic<bool>& flag() const;
};

/// Lets writes to a closed pipe or beyond the file size limit fail instead of ending the process:
/// `millrace train | head` must not lose a run.
void ignore_write_signals();

}  // namespace millrace
