// Allocation where memory that queued work still holds may be waited for.
#pragma once

#include "device/device.h"

namespace millrace {

/// As device.allocate(), for places that rather stop than give up. Out of memory, it waits until
/// the queued work has passed (one wait at `site`, whose reason is Resize), so that free blocks it
/// held can be given back, and tries once more. Errors: OutOfMemory, with what was asked and what
/// is in use; a fault of the device.
Result<BufferId> allocate_blocking(Device& device, uint64_t bytes, const char* label,
                                   const WaitSite& site);

}  // namespace millrace
