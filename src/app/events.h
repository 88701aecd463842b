// Events: what programs read. One JSON object per line, each with "event" and "time_s".
#pragma once

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace millrace {

using Json = nlohmann::ordered_json;

class Events {
 public:
  /// Time counts from construction. Writes nothing unless `is_on`.
  Events(std::FILE* to, bool is_on) : to_(to), is_on_(is_on) {}

  bool is_on() const { return is_on_; }
  /// Seconds since the start of the program.
  double seconds() const;
  /// Writes {"event": name, "time_s": ..., fields...}. NaN and infinity become null, and bytes of a
  /// path that are not UTF-8 become U+FFFD, so every line is valid JSON.
  void emit(const char* name, const Json& fields = Json::object());

 private:
  std::FILE* to_;
  bool is_on_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// `json` on one line, always valid (see emit).
std::string json_line(const Json& json);

}  // namespace millrace
