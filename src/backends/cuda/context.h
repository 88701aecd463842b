// CudaContext: one device's primary context with its stream, and what the device is.
#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/driver.h"
#include "device/device.h"

namespace millrace::cuda {

/// What the driver says of device `ordinal`. Error: Usage, naming the devices there are.
Result<DeviceInfo> describe(const Driver& driver, int ordinal);
/// All devices; none where there is no driver or no device.
std::vector<DeviceInfo> list_devices_of_driver();

/// The primary context (shared with vendor libraries in this process) and one stream for all work.
class CudaContext {
 public:
  /// Errors: Usage for a device that does not exist; what the driver says.
  static Result<std::unique_ptr<CudaContext>> open(const Driver& driver, int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  /// Makes the context that of this thread, as every call into the driver needs. Costs tens of
  /// nanoseconds.
  void use() const { driver.context_set_current(context_); }
  int attribute(Attribute attribute) const;
  Stream stream() const { return stream_; }
  /// The device's own pool, or null where the driver has none.
  MemoryPool memory_pool() const { return memory_pool_; }

  const Driver& driver;

 private:
  CudaContext(const Driver& driver, DeviceNumber device) : driver(driver), device_(device) {}

  DeviceNumber device_;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  MemoryPool memory_pool_ = nullptr;
};

}  // namespace millrace::cuda
