// Writing the event stream.
#include "app/events.h"

#include <cmath>

namespace millrace {

double Events::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Events::emit(const char* name, const Json& fields) {
  if (!is_on_) return;
  Json line = {{"event", name}, {"time_s", std::round(seconds() * 1e3) / 1e3}};
  line.update(fields);
  const std::string text = json_line(line) + "\n";
  // Flushed at once: a reader that follows the run must not wait for a full buffer.
  std::fwrite(text.data(), 1, text.size(), to_);
  std::fflush(to_);
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace millrace
