// Running another program to its end, with its output in a file.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/wait_ledger.h"

namespace millrace {

/// How a program ended.
struct ProcessEnd {
  int exit_code = -1;    // 128 + the signal that ended it
  double seconds = 0;    // from start to end
  bool stopped = false;  // it was asked to end because of `stop`
};

/// Runs `words` (a program's path and its arguments, no shell) until it ends; stdout and stderr go
/// to `log`. The host waits through `ledger`, a worker thread waits for the process. About five
/// times a second `tick` is called, if given. Once `stop` is set the program gets SIGTERM, and
/// SIGKILL ten seconds later. Errors: Usage if it cannot be started; Output if `log` cannot be
/// written.
Result<ProcessEnd> run_process_blocking(WaitLedger& ledger, const std::vector<std::string>& words,
                                        const std::filesystem::path& log,
                                        const std::atomic<bool>& stop,
                                        const std::function<void()>& tick);

/// The last lines of a file, at most `n_lines` and some kilobytes; a progress line that was
/// rewritten in place counts as several. Empty if there is no file.
std::vector<std::string> last_lines(const std::filesystem::path& file, size_t n_lines);

}  // namespace millrace
