// Waiting for an event.
#include "backends/cuda/event_wait.h"

namespace millrace::cuda {

Status wait_for_event_blocking(const CudaContext& context, Event event) {
  context.use();
  return context.driver.event_synchronize(event);
}

}  // namespace millrace::cuda
