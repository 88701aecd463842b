// Kernels of the table that this backend runs by a vendor's routine instead of the common code.
#pragma once

#include <cstdint>

#include "backends/cuda/command.h"
#include "backends/cuda/context.h"

namespace millrace::cuda {

/// One such kernel. A file of this folder that wraps a vendor library defines it and overrides.cpp
/// lists it.
struct Override {
  KernelId kernel;
  /// Queues the routine in the context's stream, which must be all it does: no wait, no allocation.
  /// The argument block has the scratch address.
  Status (*launch)(const CudaContext& context, const Command& command);
  /// Device memory that one launch needs beside its bindings, or 0.
  uint64_t (*scratch_bytes)(uint64_t threads, std::span<const std::byte> params);
  /// Upper bound of the launches and copies that the routine makes.
  uint32_t n_driver_calls;
};

/// The override of `kernel`, or null for the common code.
const Override* find_override(KernelId kernel);

}  // namespace millrace::cuda
