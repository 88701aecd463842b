// Giving one command to the driver.
#pragma once

#include "backends/cuda/command.h"
#include "backends/cuda/context.h"
#include "backends/cuda/kernel_library.h"

namespace millrace::cuda {

/// Calls into the driver that `command` takes.
uint32_t n_driver_calls(const KernelLibrary& kernels, const Command& command);

/// Queues `command` in the stream; the context must be in use. None of the calls waits for the
/// device: transfers are from or to pinned memory, code is loaded, and the stream has room.
Status issue(const CudaContext& context, const KernelLibrary& kernels, const Command& command);

}  // namespace millrace::cuda
