// Printing for people.
#include "app/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>

namespace millrace {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

void write(std::FILE* to, std::string_view text) { std::fwrite(text.data(), 1, text.size(), to); }

}  // namespace

Console::Console(std::FILE* err, std::FILE* out, bool is_terminal, uint32_t columns)
    : err_(err), out_(out), is_terminal_(is_terminal), columns_(columns) {}

Console::~Console() { end_progress(); }

void Console::print(std::FILE* to, std::string_view prefix, std::string_view text) {
  if (!live_.empty()) write(err_, kClearLine);
  if (to != err_) std::fflush(err_);
  write(to, fmt::format("{}{}\n", prefix, text));
  std::fflush(to);
  if (!live_.empty()) {
    write(err_, live_);
    std::fflush(err_);
  }
}

void Console::error(std::string_view text) { print(err_, "error: ", text); }

void Console::warning(std::string_view text) {
  if (level_ >= LogLevel::Warning) print(err_, "warning: ", text);
}

void Console::info(std::string_view text) {
  if (level_ >= LogLevel::Info) print(err_, "", text);
}

void Console::debug(std::string_view text) {
  if (level_ >= LogLevel::Debug) print(err_, "", text);
}

void Console::result(std::string_view text) {
  if (level_ > LogLevel::Error) print(out_, "", text);
}

void Console::output(std::string_view text) { print(out_, "", text); }

void Console::progress(std::string_view line) {
  if (level_ < LogLevel::Info) return;
  if (!is_terminal_) {
    print(err_, "", line);
    return;
  }
  // The last column stays free: some terminals wrap when it is written.
  live_ = line.substr(0, columns_ > 1 ? columns_ - 1 : 0);
  write(err_, kClearLine);
  write(err_, live_);
  std::fflush(err_);
}

void Console::end_progress() {
  if (live_.empty()) return;
  live_.clear();
  write(err_, "\n");
  std::fflush(err_);
}

bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

uint32_t stderr_columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string with_thousands(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e7) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string bytes_text(uint64_t bytes) {
  if (bytes >= 1ull << 30)
    return fmt::format("{:.1f} GiB", std::ldexp(static_cast<double>(bytes), -30));
  if (bytes >= 1ull << 20)
    return fmt::format("{:.1f} MiB", std::ldexp(static_cast<double>(bytes), -20));
  return fmt::format("{:.1f} KiB", std::ldexp(static_cast<double>(bytes), -10));
}

}  // namespace millrace
