// CudaOptions: what the device id says after "cuda:".
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace millrace::cuda {

/// Fields separated by commas, all optional, in any order, as in "cuda:1,check":
///   N              number of the device, from 0
///   check          one command at a time in the driver, so that a fault names its kernel; slow
///   memory=BYTES   limit of device memory; the card's memory otherwise
///   staging=BYTES  size of the upload ring (pinned host memory); the readback ring has a quarter
/// and, for tests and tuning:
///   waves=N        groups per launch at most, in times what the processors hold at once
///   batch=N        commands per batch at most
///   depth=N        driver calls queued at most; further commands stay with the host until there is
///                  room
///   close=MS       how long the end of the device waits for queued work
struct CudaOptions {
  int ordinal = 0;
  bool check = false;
  uint64_t memory_bytes = 0;
  uint64_t staging_bytes = uint64_t{64} << 20;
  uint32_t waves = 8;
  // A batch costs two timing events, about 2 us of the device, and bounds how late a point is
  // known.
  uint32_t commands_per_batch = 64;
  // Drivers queue 1024 launches per stream and then stop the host; this stays well below.
  uint32_t depth = 512;
  std::chrono::milliseconds close_bound{10'000};
};

/// Parses `text`. Error: Usage, naming the field.
Result<CudaOptions> parse_options(const std::string& text);

}  // namespace millrace::cuda
