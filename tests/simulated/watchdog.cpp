// The watchdog's thread, and the names of the functions on another thread's stack.
#include "simulated/watchdog.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "simulated/engine.h"

namespace millrace::simulated {
namespace {

constexpr int kStackSignal = SIGUSR2;
std::array<void*, 64> stack;
std::atomic<int> stack_depth = -1;

void take_stack(int) { stack_depth.store(backtrace(stack.data(), static_cast<int>(stack.size()))); }

// What `command` prints, line by line.
std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  std::array<char, 4096> line;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) lines.emplace_back(line.data());
  pclose(pipe);
  return lines;
}

// The functions of this program in which `thread` stands, innermost first.
std::string functions_of(pthread_t thread) {
  struct sigaction action = {};
  action.sa_handler = &take_stack;
  action.sa_flags = SA_RESTART;  // the thread goes on with its wait
  sigaction(kStackSignal, &action, nullptr);
  pthread_kill(thread, kStackSignal);
  while (stack_depth.load() < 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  Dl_info self = {};
  dladdr(reinterpret_cast<void*>(&take_stack), &self);
  // Symbols are hidden, so that only a tool that reads the file knows them.
  std::string command = fmt::format("addr2line -Cfpe /proc/{}/exe", getpid());
  for (int i = 0; i < stack_depth.load(); ++i) {
    Dl_info place = {};
    if (dladdr(stack[static_cast<size_t>(i)], &place) == 0) continue;
    if (place.dli_fbase != self.dli_fbase) continue;
    // A return address may belong to the next line already.
    command += fmt::format(" {:#x}", reinterpret_cast<uintptr_t>(stack[static_cast<size_t>(i)]) -
                                         reinterpret_cast<uintptr_t>(self.dli_fbase) - 1);
  }
  std::string all;
  for (const std::string& line : lines_of(command)) all += "  " + line;
  return all;
}

}  // namespace

Watchdog::Watchdog(Engine* engine, std::chrono::milliseconds limit)
    : engine_(engine), host_(pthread_self()) {
  // The first call loads a library, which a signal handler may not.
  void* here = nullptr;
  backtrace(&here, 1);
  thread_ = std::thread([this, limit] { watch(limit); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch(std::chrono::milliseconds limit) {
  uint64_t seen = engine_->calls();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, limit, [this] { return ending_; })) {
    if (const uint64_t calls = engine_->calls(); calls != seen) {
      seen = calls;
      continue;
    }
    const std::string message = report(limit);
    if (message.empty()) continue;
    std::fputs(message.c_str(), stderr);
    std::exit(EXIT_FAILURE);
  }
}

std::string Watchdog::report(std::chrono::milliseconds limit) {
  std::string newest;
  size_t n_queued = 0;
  {
    std::lock_guard lock(engine_->mutex);
    const std::vector<std::string> pending = engine_->pending();
    if (pending.empty()) return {};
    newest = pending.back();
    n_queued = pending.size();
  }
  return fmt::format(
      "deadlock: the host waits outside the ledger: it asked nothing of the device for {} ms, with "
      "{} commands queued, the newest: {}. It stands in:\n{}",
      limit.count(), n_queued, newest, functions_of(host_));
}

}  // namespace millrace::simulated
