// A memory plan as text and as JSON.
#include "train/memory_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "train/memory_plan.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

ordered_json budget_or_null(uint64_t bytes) {
  return bytes == UINT64_MAX ? ordered_json(nullptr) : ordered_json(bytes);
}

std::string of_budget(uint64_t budget) {
  return budget == UINT64_MAX ? "" : fmt::format(" of {}", memory_text(budget));
}

}  // namespace

std::string memory_text(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 10000 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024);
}

std::vector<std::string> plan_text(const MemoryPlan& plan) {
  std::vector<std::string> lines;
  if (plan.shares_host_memory) {
    lines.push_back(fmt::format("memory plan: at most {}{}", memory_text(plan.ram_bytes()),
                                of_budget(plan.ram_budget)));
  } else {
    lines.push_back(fmt::format("memory plan: at most {}{} on the device, {}{} on the host",
                                memory_text(plan.device_bytes), of_budget(plan.vram_budget),
                                memory_text(plan.host_bytes), of_budget(plan.ram_budget)));
  }
  for (const MemoryLine& line : plan.lines) {
    const uint64_t bytes = line.host_bytes + line.device_bytes;
    if (bytes == 0) continue;
    const char* where = line.device_bytes > 0 ? "device" : "host";
    lines.push_back(fmt::format("  {:<22}{:>12}{}", line.name, memory_text(bytes),
                                plan.shares_host_memory ? "" : fmt::format("  {}", where)));
  }
  for (const std::string& what : plan.gave_up) {
    lines.push_back("  given up to fit: " + what);
  }
  return lines;
}

ordered_json to_json(const MemoryPlan& plan) {
  ordered_json lines = ordered_json::array();
  for (const MemoryLine& line : plan.lines) {
    lines.push_back(
        {{"what", line.name}, {"host", line.host_bytes}, {"device", line.device_bytes}});
  }
  return {{"host", plan.host_bytes},
          {"device", plan.device_bytes},
          {"shared", plan.shares_host_memory},
          {"total", plan.host_bytes + plan.device_bytes},
          {"ram_budget", budget_or_null(plan.ram_budget)},
          {"vram_budget", budget_or_null(plan.vram_budget)},
          {"max_cap", plan.max_cap},
          {"image_cache_bytes", plan.image_cache_bytes},
          {"instance_budget", plan.instance_budget},
          {"gave_up", plan.gave_up},
          {"lines", lines}};
}

}  // namespace millrace
