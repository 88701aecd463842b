// Allocation of device memory and pinned host memory.
#include "backends/cuda/cuda_memory.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "device/buffer_store.h"

namespace millrace::cuda {

Result<uint64_t> DeviceMemory::create(uint64_t bytes) {
  context_->use();
  const Driver& driver = context_->driver;
  DevicePointer pointer = 0;
  Status status = Status::Ok;
  if (context_->memory_pool() != nullptr) {
    status = driver.memory_allocate_async(&pointer, bytes, context_->stream());
    // What the driver's pool keeps in pieces of the wrong size may be just what is missing.
    if (status == Status::OutOfMemory) {
      driver.memory_pool_trim(context_->memory_pool(), 0);
      status = driver.memory_allocate_async(&pointer, bytes, context_->stream());
    }
  } else {
    status = driver.memory_allocate(&pointer, bytes);
  }
  if (status != Status::Ok) return driver.error(status, "allocate device memory");
  return uint64_t{pointer};
}

void DeviceMemory::destroy(uint64_t handle, uint64_t) {
  context_->use();
  const Status status = context_->driver.memory_free(handle);
  if (status != Status::Ok && !is_sticky(status)) {
    spdlog::error("{}", context_->driver.error(status, "free device memory").message);
  }
}

PinnedMemory::~PinnedMemory() { free_unused_blocking(); }

Result<uint64_t> PinnedMemory::create(uint64_t bytes) {
  context_->use();
  void* pointer = nullptr;
  MILLRACE_TRY(context_->driver.check(context_->driver.host_allocate(&pointer, bytes, 0),
                                      "allocate pinned host memory"));
  return reinterpret_cast<uint64_t>(pointer);
}

void PinnedMemory::destroy(uint64_t handle, uint64_t) {
  std::lock_guard lock(mutex_);
  unused_.push_back(handle);
}

void PinnedMemory::free_unused_blocking() {
  std::vector<uint64_t> handles;
  {
    std::lock_guard lock(mutex_);
    handles.swap(unused_);
  }
  if (handles.empty()) return;
  context_->use();
  for (const uint64_t handle : handles) {
    const Status status = context_->driver.host_free(reinterpret_cast<void*>(handle));
    if (status != Status::Ok && !is_sticky(status)) {
      spdlog::error("{}", context_->driver.error(status, "free pinned host memory").message);
    }
  }
}

Result<std::unique_ptr<PinnedStaging>> PinnedStaging::make(const CudaContext* context,
                                                           uint64_t ring_bytes) {
  std::unique_ptr<PinnedStaging> made(new PinnedStaging(context));
  MILLRACE_ASSIGN(made->ring_, BufferStore::make_staging(made->memory_, ring_bytes));
  made->store_ = std::make_unique<StagingStore>(&made->pool_, made->ring_);
  return made;
}

Result<std::byte*> PinnedStaging::take(uint64_t bytes, Point point, Point passed) {
  MILLRACE_ASSIGN(const StagedBytes staged, store_->take(bytes, point, passed));
  return reinterpret_cast<std::byte*>(staged.handle) + staged.offset;
}

}  // namespace millrace::cuda
