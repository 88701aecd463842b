// LaunchLog: the text.
#include "device/launch_log.h"

#include <fmt/format.h>

namespace millrace {

std::string LaunchLog::between(Point after, Point last, size_t most) const {
  std::string text;
  size_t n_found = 0;
  for (size_t i = n_ > kKept ? n_ - kKept : 0; i < n_; ++i) {
    const Entry& entry = entries_[i % kKept];
    if (entry.point <= after || entry.point > last) continue;
    if (n_found++ >= most) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} queued at {}", kernel_row(entry.kernel).name,
                        source_place(entry.site.file_name(), entry.site.line()));
  }
  if (n_found == 0) return "no kernel";
  if (n_found > most) text += fmt::format(" and {} more", n_found - most);
  return text;
}

}  // namespace millrace
