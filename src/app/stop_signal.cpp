// Signal handlers; they only touch lock-free atomics, write() and _exit().
#include "app/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace millrace {
namespace {

constexpr int kInterruptedExit = 130;
constexpr std::string_view kMessage =
    "\nstopping at the next step and saving; once more ends at once, unsaved\n";

std::atomic<bool> stop_requested = false;
std::atomic<bool> is_quiet = false;
static_assert(std::atomic<bool>::is_always_lock_free);

struct sigaction previous_interrupt, previous_terminate;

extern "C" void on_stop_signal(int) {
  if (stop_requested.exchange(true)) _exit(kInterruptedExit);
  if (is_quiet) return;
  const int saved_errno = errno;
  if (::write(STDERR_FILENO, kMessage.data(), kMessage.size()) < 0)
    errno = 0;  // nowhere to tell it
  errno = saved_errno;
}

}  // namespace

StopSignal::StopSignal(bool quiet) {
  stop_requested = false;
  is_quiet = quiet;
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_interrupt);
  sigaction(SIGTERM, &action, &previous_terminate);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &previous_interrupt, nullptr);
  sigaction(SIGTERM, &previous_terminate, nullptr);
}

const std::atomic<bool>& StopSignal::flag() const { return stop_requested; }

void ignore_write_signals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

}  // namespace millrace
