// Parsing of CPU device ids, and the machine's own figures.
#include "backends/cpu/cpu_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>
#include <thread>

namespace millrace::cpu {
namespace {

constexpr int kMaxThreads = 1024;
constexpr uint64_t kMinStaging = 4096;

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

bool parse_field(std::string_view field, CpuOptions* options) {
  if (field == "lazy") {
    options->lazy = true;
    return true;
  }
  if (field.starts_with("memory=")) {
    const auto bytes = parse_number(field.substr(7));
    options->memory_bytes = bytes.value_or(0);
    return bytes && *bytes > 0;
  }
  if (field.starts_with("staging=")) {
    const auto bytes = parse_number(field.substr(8));
    options->staging_bytes = bytes.value_or(0);
    return bytes && *bytes >= kMinStaging;
  }
  const auto threads = parse_number(field);
  if (!threads || *threads < 1 || *threads > kMaxThreads) return false;
  options->threads = static_cast<int>(*threads);
  return true;
}

}  // namespace

Result<CpuOptions> parse_options(const std::string& text) {
  CpuOptions options;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view field = rest.substr(0, comma);
    if (!parse_field(field, &options)) {
      return Error{ErrorCode::Usage,
                   fmt::format("device 'cpu:{}': '{}' is not a thread count of 1 to {}, "
                               "memory=BYTES, staging=BYTES (at least {}) or lazy",
                               text, field, kMaxThreads, kMinStaging)};
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (options.threads == 0) {
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  if (options.memory_bytes == 0) options.memory_bytes = machine_memory_bytes();
  return options;
}

uint64_t machine_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "processor";
}

}  // namespace millrace::cpu
