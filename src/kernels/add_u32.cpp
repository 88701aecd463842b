// add_u32: the device self-test kernel; adds a number to each element of one buffer.
//   data <- data + value (mod 2^32)
// Shapes    data: [n] uint32, n = bytes / 4.
// Threads   one per element; elements past the thread count stay.
// Writes    data.
// Errors    a binding that is not whole elements raises, which tests use as a device fault.
// Test      tests/backends/cpu/cpu_device_test.cpp
#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"
#include "base/result.h"
#include "kernels/kernel.h"
#include "kernels/tensor_params.h"

namespace millrace::kernels {

void add_u32(const KernelCall& call) {
  if (call.bytes[0] % sizeof(uint32_t) != 0) {
    raise({ErrorCode::Internal,
           fmt::format("binding 0 holds {} bytes, which is not a multiple of 4", call.bytes[0])});
  }
  uint32_t* data = call.buffer<uint32_t>(0);
  const uint32_t value = call.params_as<AddU32Params>().value;
  const uint64_t n = std::min(call.threads, call.size<uint32_t>(0));
  parallel_for(n, 16384, [=](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) data[i] += value;
  });
}

}  // namespace millrace::kernels
