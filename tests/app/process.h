// Running the millrace program as users do: arguments in; exit code, stdout and stderr out.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

struct Outcome {
  int exit_code = -1;  // 128 + the signal that ended it
  std::string out, err;
};

/// A running millrace; its streams go to files below `scratch`.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, std::filesystem::path scratch);
  void send(int signal) const;
  /// What it wrote to stderr so far.
  std::string err() const;
  bool has_ended() const;
  Outcome finish();

 private:
  std::filesystem::path scratch_;
  pid_t pid_ = -1;
};

Outcome run_millrace(const std::vector<std::string>& arguments,
                     const std::filesystem::path& scratch);

/// The content of a file; empty if there is none.
std::string content_of(const std::filesystem::path& path);

}  // namespace millrace
