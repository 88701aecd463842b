// The one call of this backend that stops until the device has come to an event.
#pragma once

#include "backends/cuda/context.h"

namespace millrace::cuda {

/// Stops the calling worker thread until the device has passed `event`, asleep. Returns what became
/// of the work before it.
Status wait_for_event_blocking(const CudaContext& context, Event event);

}  // namespace millrace::cuda
