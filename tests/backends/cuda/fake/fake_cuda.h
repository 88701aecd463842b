// FakeCuda: the test's hand on the fake driver library, which runs a stream in host memory.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "backends/cuda/driver_types.h"

namespace millrace::cuda::fake {

/// Runs a kernel: its entry point, its argument block and the groups dispatched. Called on the fake
/// device's thread; returns what becomes of the context.
using Runner = Status (*)(const char* entry, const std::byte* arguments, size_t bytes,
                          uint32_t groups);

/// What the fake has seen since reset().
struct Counts {
  uint64_t launches = 0;     // kernels given to the driver
  uint64_t queued = 0;       // commands (all but events) that have not run
  uint64_t live_blocks = 0;  // device memory
  uint64_t live_pinned = 0;  // pinned host memory
  uint64_t live_events = 0;
  uint64_t modules = 0;
  uint64_t retained = 0;     // references to the primary context
  uint64_t allocations = 0;  // calls that allocate device or pinned memory
};

/// Interface of the library's one object. Thread-safe.
class FakeCuda {
 public:
  /// From now on commands wait for run() or release(). Events pass as soon as all before them has.
  virtual void hold() = 0;
  virtual void release() = 0;
  /// Lets the oldest `n` commands run.
  virtual void run(uint64_t n) = 0;

  /// The allocations after `skip` more fail, `times` of them.
  virtual void fail_allocations(uint64_t skip, uint64_t times) = 0;
  /// The launch after `skip` more is refused with `status`.
  virtual void refuse_launch(uint64_t skip, Status status) = 0;
  /// The kernel that runs after `skip` more ends the context with `status`.
  virtual void fault_kernel(uint64_t skip, Status status) = 0;
  virtual void set_devices(int n) = 0;
  /// Whether the device has a stream-ordered allocator.
  virtual void set_memory_pools(bool has_pools) = 0;
  virtual void set_runner(Runner runner) = 0;

  virtual Counts counts() = 0;
  /// Calls of this thread since reset() that a real driver may stop for: synchronisation, freeing
  /// of pinned memory, plain allocation and freeing with work queued, launches into a full queue.
  virtual uint64_t stopping_calls_of_this_thread() = 0;
  /// Bytes from `address` to the end of its block, or 0; on the fake device's thread.
  virtual uint64_t bytes_behind(uint64_t address) = 0;
  /// Ends holding, rules and faults; waits until the stream is empty.
  virtual void reset() = 0;

 protected:
  ~FakeCuda() = default;
};

constexpr const char* kEntry = "millrace_fake_cuda";

/// The fake behind MILLRACE_CUDA_LIBRARY, or null where that names a real driver or nothing.
inline FakeCuda* fake_cuda() {
  const char* library = std::getenv("MILLRACE_CUDA_LIBRARY");
  if (library == nullptr) return nullptr;
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  using Entry = FakeCuda* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, kEntry));
  return entry == nullptr ? nullptr : entry();
}

}  // namespace millrace::cuda::fake
