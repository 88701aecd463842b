// Parsing of Vulkan device ids.
#include "backends/vulkan/vulkan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace millrace::vulkan {
namespace {

constexpr uint64_t kMinStaging = 4096;
constexpr uint64_t kMaxIndex = 1023;
constexpr uint64_t kMaxBatch = 4096;
constexpr uint64_t kMaxClose = uint64_t{1} << 20;

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

/// The number after `name` in `field`, if it is in the range.
std::optional<uint64_t> named_number(std::string_view field, std::string_view name, uint64_t least,
                                     uint64_t most = UINT64_MAX) {
  if (!field.starts_with(name)) return {};
  const auto value = parse_number(field.substr(name.size()));
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

bool parse_field(std::string_view field, VulkanOptions* options) {
  if (field == "validate") {
    options->validate = true;
  } else if (field == "lazy") {
    options->lazy = true;
  } else if (field == "unmapped") {
    options->unmapped = true;
  } else if (const auto memory = named_number(field, "memory=", 1)) {
    options->memory_bytes = *memory;
  } else if (const auto staging = named_number(field, "staging=", kMinStaging)) {
    options->staging_bytes = *staging;
  } else if (const auto batch = named_number(field, "batch=", 1, kMaxBatch)) {
    options->commands_per_batch = static_cast<uint32_t>(*batch);
  } else if (const auto close = named_number(field, "close=", 0, kMaxClose)) {
    options->close_bound = std::chrono::milliseconds(*close);
  } else if (const auto index = named_number(field, "", 0, kMaxIndex)) {
    options->index = static_cast<int>(*index);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<VulkanOptions> parse_options(const std::string& text) {
  VulkanOptions options;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view field = rest.substr(0, comma);
    if (!parse_field(field, &options)) {
      return Error{ErrorCode::Usage,
                   fmt::format("device 'vulkan:{}': '{}' is not a device number, memory=BYTES, "
                               "staging=BYTES (at least {}), validate, lazy, unmapped, batch=N "
                               "or close=MS",
                               text, field, kMinStaging)};
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (options.lazy && options.validate) {
    return Error{ErrorCode::Usage, fmt::format("device 'vulkan:{}': lazy and validate exclude each "
                                               "other",
                                               text)};
  }
  // Held work is let go command by command.
  if (options.lazy) options.commands_per_batch = 1;
  return options;
}

}  // namespace millrace::vulkan
