// The second try of an allocation.
#include "device/allocate.h"

namespace millrace {

Result<BufferId> allocate_blocking(Device& device, uint64_t bytes, const char* label,
                                   const WaitSite& site) {
  Result<BufferId> first = device.allocate(bytes, label);
  if (first.ok() || first.error().code != ErrorCode::OutOfMemory) return first;
  MILLRACE_TRY(device.wait_blocking(device.submit(), site));
  return device.allocate(bytes, label);
}

}  // namespace millrace
