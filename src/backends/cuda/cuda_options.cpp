// Parsing of CUDA device ids.
#include "backends/cuda/cuda_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace millrace::cuda {
namespace {

constexpr uint64_t kMinStaging = 4096;
constexpr uint64_t kMaxOrdinal = 1023;
constexpr uint64_t kMaxCount = uint64_t{1} << 20;

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

/// The number after `name` in `field`, if it is at least `least`.
std::optional<uint64_t> named_number(std::string_view field, std::string_view name, uint64_t least,
                                     uint64_t most = UINT64_MAX) {
  if (!field.starts_with(name)) return {};
  const auto value = parse_number(field.substr(name.size()));
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

bool parse_field(std::string_view field, CudaOptions* options) {
  if (field == "check") {
    options->check = true;
  } else if (const auto memory = named_number(field, "memory=", 1)) {
    options->memory_bytes = *memory;
  } else if (const auto staging = named_number(field, "staging=", kMinStaging)) {
    options->staging_bytes = *staging;
  } else if (const auto waves = named_number(field, "waves=", 1, kMaxCount)) {
    options->waves = static_cast<uint32_t>(*waves);
  } else if (const auto batch = named_number(field, "batch=", 1, kMaxCount)) {
    options->commands_per_batch = static_cast<uint32_t>(*batch);
  } else if (const auto depth = named_number(field, "depth=", 1, kMaxCount)) {
    options->depth = static_cast<uint32_t>(*depth);
  } else if (const auto close = named_number(field, "close=", 0, kMaxCount)) {
    options->close_bound = std::chrono::milliseconds(*close);
  } else if (const auto ordinal = named_number(field, "", 0, kMaxOrdinal)) {
    options->ordinal = static_cast<int>(*ordinal);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<CudaOptions> parse_options(const std::string& text) {
  CudaOptions options;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view field = rest.substr(0, comma);
    if (!parse_field(field, &options)) {
      return Error{ErrorCode::Usage,
                   fmt::format("device 'cuda:{}': '{}' is not a device number, check, "
                               "memory=BYTES, staging=BYTES (at least {}), waves=N, batch=N, "
                               "depth=N or close=MS",
                               text, field, kMinStaging)};
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (options.check) options.depth = options.commands_per_batch = 1;
  return options;
}

}  // namespace millrace::cuda
