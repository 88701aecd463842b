// Parsing of simulated device ids.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "simulated/simulated_device.h"

namespace millrace::simulated {
namespace {

// Reads "name=number" into `value`.
bool parse_number(std::string_view field, std::string_view name, uint64_t* value) {
  if (!field.starts_with(name) || field.size() <= name.size() + 1 || field[name.size()] != '=') {
    return false;
  }
  field.remove_prefix(name.size() + 1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), *value);
  return error == std::errc() && end == field.data() + field.size();
}

bool parse_clock(std::string_view field, Options* options) {
  if (field == "hold") {
    options->clock = Clock::Hold;
  } else if (field == "stall") {
    options->clock = Clock::Stall;
  } else if (field == "immediate") {
    options->clock = Clock::Immediate;
  } else if (parse_number(field, "lag", &options->lag_batches)) {
    options->clock = Clock::Lag;
  } else if (parse_number(field, "random", &options->seed)) {
    options->clock = Clock::Random;
  } else {
    return false;
  }
  return true;
}

bool parse_field(std::string_view field, Options* options) {
  const bool all = field == "checks";
  options->poison = options->poison || all || field == "poison";
  options->check_host = options->check_host || all || field == "host";
  options->check_ranges = options->check_ranges || all || field == "ranges";
  if (all || field == "poison" || field == "host" || field == "ranges") return true;
  return parse_clock(field, options) || parse_number(field, "memory", &options->memory_bytes) ||
         parse_number(field, "staging", &options->staging_bytes) ||
         parse_number(field, "watchdog", &options->watchdog_ms);
}

}  // namespace

Result<Options> parse_options(const std::string& text) {
  Options options;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view field = rest.substr(0, comma);
    if (!parse_field(field, &options)) {
      return Error{ErrorCode::Usage,
                   fmt::format("device 'simulated:{}': '{}' is not hold, stall, immediate, "
                               "lag=BATCHES, random=SEED, memory=BYTES, staging=BYTES, "
                               "watchdog=MS, poison, host, ranges or checks",
                               text, field)};
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return options;
}

}  // namespace millrace::simulated
