// Command: one piece of recorded work, with everything that the driver needs for it.
#pragma once

#include "backends/cuda/driver_types.h"
#include "device/argument_block.h"
#include "device/device.h"
#include "device/ticket_pool.h"

namespace millrace::cuda {

struct Command {
  enum class Kind : uint8_t { Kernel, Upload, Download, Copy, Fill };
  Kind kind = Kind::Kernel;
  // Device or host addresses; a command of 0 bytes calls nothing.
  uint64_t to = 0;
  uint64_t from = 0;
  uint64_t bytes = 0;
  uint32_t pattern = 0;           // Fill
  TicketState* ticket = nullptr;  // Download: one reference, which the queue takes over
  KernelId kernel = {};           // Kernel, with its threads and arguments
  uint64_t threads = 0;
  SourceLocation site;
  ArgumentBlock arguments;
};

}  // namespace millrace::cuda
