// Console: what people read. Messages and the progress line go to stderr, results to stdout.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace millrace {

enum class LogLevel : uint8_t { Error, Warning, Info, Debug };

class Console {
 public:
  /// On a terminal the progress line is written in place, `columns` wide; else it is a line like
  /// any other.
  Console(std::FILE* err, std::FILE* out, bool is_terminal, uint32_t columns);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void set_level(LogLevel level) { level_ = level; }
  LogLevel level() const { return level_; }
  bool is_terminal() const { return is_terminal_; }
  uint32_t columns() const { return columns_; }
  /// Sends results to stderr: stdout belongs to the event stream.
  void keep_stdout_free() { out_ = err_; }

  void error(std::string_view text);
  void warning(std::string_view text);
  void info(std::string_view text);
  void debug(std::string_view text);
  /// What the command was for; printed at every level but Error.
  void result(std::string_view text);
  /// The same, printed at every level.
  void output(std::string_view text);

  /// Shows `line` (at Info and above), in place of the last one on a terminal.
  void progress(std::string_view line);
  /// Leaves the progress line as it stands and goes on below it.
  void end_progress();

 private:
  void print(std::FILE* to, std::string_view prefix, std::string_view text);

  std::FILE* err_;
  std::FILE* out_;
  bool is_terminal_;
  uint32_t columns_;
  LogLevel level_ = LogLevel::Info;
  std::string live_;  // the progress line on the terminal; empty = none
};

/// A console on this process's stderr and stdout.
bool stderr_is_terminal();
uint32_t stderr_columns();

/// 1234567 as "1,234,567".
std::string with_thousands(uint64_t number);
/// "0.4 s", "48 s", "13:40" or "1:02:03"; "?" where it is not known.
std::string duration_text(double seconds);
/// "4.0 GiB".
std::string bytes_text(uint64_t bytes);

}  // namespace millrace
