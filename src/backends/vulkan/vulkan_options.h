// VulkanOptions: what the device id says after "vulkan:".
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace millrace::vulkan {

/// Fields separated by commas, all optional, in any order, as in "vulkan:1,memory=8589934592":
///   N              number of the device in the list of devices, best first; else the best
///   memory=BYTES   limit of device memory; the card's memory otherwise
///   staging=BYTES  size of the upload ring; the readback ring has a quarter
///   validate       run under the validation layer; what it says is a fault of the device
/// and, for tests and tuning:
///   lazy           queued work is handed to the driver, which runs it only as far as a
///                  wait_blocking (or the end of the device) asks for; not with validate, whose
///                  layer (1.3.239) loses count of semaphores that the host signals
///   unmapped       the host never touches device memory itself, as if it were across a bus
///   batch=N        commands per submission at most
///   close=MS       how long the end of the device waits for queued work
struct VulkanOptions {
  int index = 0;
  uint64_t memory_bytes = 0;
  uint64_t staging_bytes = uint64_t{64} << 20;
  bool validate = false;
  bool lazy = false;
  bool unmapped = false;
  uint32_t commands_per_batch = 64;
  std::chrono::milliseconds close_bound{10'000};
};

/// Parses `text`. Error: Usage, naming the field.
Result<VulkanOptions> parse_options(const std::string& text);

}  // namespace millrace::vulkan
