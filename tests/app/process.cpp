// Spawning and waiting for the program.
#include "app/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <iterator>

extern char** environ;

namespace millrace {

Process::Process(const std::vector<std::string>& arguments, std::filesystem::path scratch)
    : scratch_(std::move(scratch)) {
  std::filesystem::create_directories(scratch_);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string out = (scratch_ / "stdout").string(), err = (scratch_ / "stderr").string();
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::vector<std::string> words = {MILLRACE_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int failed = posix_spawn(&pid_, MILLRACE_BINARY, &actions, nullptr, argv.data(), environ);
  EXPECT_EQ(failed, 0) << "cannot start " << MILLRACE_BINARY;
  if (failed != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
}

void Process::send(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

std::string Process::err() const { return content_of(scratch_ / "stderr"); }

bool Process::has_ended() const {
  siginfo_t info{};
  if (pid_ <= 0) return true;
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

Outcome Process::finish() {
  Outcome outcome;
  int status = 0;
  if (pid_ > 0 && waitpid(pid_, &status, 0) == pid_) {
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_ = -1;
  outcome.out = content_of(scratch_ / "stdout");
  outcome.err = err();
  return outcome;
}

Outcome run_millrace(const std::vector<std::string>& arguments,
                     const std::filesystem::path& scratch) {
  return Process(arguments, scratch).finish();
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace millrace
