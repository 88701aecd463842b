// Spawning a program, and waiting for it on a worker thread.
#include "bench/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/worker_pool.h"

extern char** environ;

namespace millrace {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick{200};
constexpr std::chrono::seconds kGrace{10};  // from SIGTERM to SIGKILL
constexpr std::streamoff kTailBytes = 16 << 10;

Result<pid_t> spawn(const std::vector<std::string>& words, const std::filesystem::path& log) {
  if (words.empty()) return Error{ErrorCode::Internal, "no program to run"};
  // Opened here first: posix_spawn would blame the program for a log that cannot be written.
  if (!std::ofstream(log)) {
    return Error{ErrorCode::Output, fmt::format("cannot write {}", log.string())};
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_APPEND, 0);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  argv.reserve(copies.size() + 1);
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error{ErrorCode::Usage, fmt::format("cannot run {}: {}", words[0], strerror(failed))};
  }
  return pid;
}

}  // namespace

Result<ProcessEnd> run_process_blocking(WaitLedger& ledger, const std::vector<std::string>& words,
                                        const std::filesystem::path& log,
                                        const std::atomic<bool>& stop,
                                        const std::function<void()>& tick) {
  const auto begin = steady_clock::now();
  MILLRACE_ASSIGN(const pid_t pid, spawn(words, log));
  ProcessEnd end;
  std::mutex mutex;
  std::condition_variable changed;
  bool has_ended = false;
  WorkerPool worker(1);
  worker.post([&] {
    const int exit_code = await_child_on_worker(pid);
    std::lock_guard lock(mutex);
    end.exit_code = exit_code;
    end.seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    has_ended = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  steady_clock::time_point stopped_at = {};
  const WaitSite site = {WaitReason::UserRead, "bench.child"};
  while (!ledger.wait_for_blocking(
      lock, changed, [&] { return has_ended; }, kTick, site)) {
    if (stop.load() && !end.stopped) {
      end.stopped = true;
      stopped_at = steady_clock::now();
      ::kill(pid, SIGTERM);
    } else if (end.stopped && steady_clock::now() - stopped_at > kGrace) {
      ::kill(pid, SIGKILL);
    }
    if (tick) tick();
  }
  return end;
}

std::vector<std::string> last_lines(const std::filesystem::path& file, size_t n_lines) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return {};
  stream.seekg(std::max<std::streamoff>(0, std::streamoff{stream.tellg()} - kTailBytes));
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (lines.size() > n_lines) lines.erase(lines.begin(), lines.end() - static_cast<long>(n_lines));
  return lines;
}

}  // namespace millrace
