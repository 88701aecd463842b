// CpuOptions: what the device id says after "cpu:".
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace millrace::cpu {

/// Fields separated by commas, all optional, in any order, as in "cpu:4,memory=8589934592":
///   N              threads that run kernels; the processor's count otherwise
///   memory=BYTES   limit of device memory; the machine's memory otherwise
///   staging=BYTES  size of the staging ring
///   lazy           queued work runs only as far as a wait_blocking (or the end of the device) asks
///   for,
///                  so that a test decides what has run
struct CpuOptions {
  int threads = 0;
  uint64_t memory_bytes = 0;
  uint64_t staging_bytes = uint64_t{4} << 20;  // large transfers have blocks of their own
  bool lazy = false;
};

/// Parses `text`; fills in the defaults of this machine. Error: Usage, naming the field.
Result<CpuOptions> parse_options(const std::string& text);

/// The machine's memory and the processor's name.
uint64_t machine_memory_bytes();
std::string processor_name();

}  // namespace millrace::cpu
