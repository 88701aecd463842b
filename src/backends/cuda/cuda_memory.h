// The blocks of a CUDA device: device memory, and pinned host memory for transfers.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/context.h"
#include "device/block_pool.h"
#include "device/staging_store.h"

namespace millrace::cuda {

/// Device memory; a handle is its device address. Blocks come from the driver's stream-ordered
/// allocator, since the plain one may stop the host until all queued work has run: allocating is
/// queued in the stream, and freeing a block that no work uses any more needs no look at the
/// stream.
class DeviceMemory : public BlockSource {
 public:
  explicit DeviceMemory(const CudaContext* context) : context_(context) {}
  Result<uint64_t> create(uint64_t bytes) override;
  void destroy(uint64_t handle, uint64_t bytes) override;

 private:
  const CudaContext* context_;
};

/// Pinned host memory; a handle is its host address. Freeing may stop the caller until all queued
/// work has run, so destroy() only sets a block aside until free_unused_blocking(). Thread-safe.
class PinnedMemory : public BlockSource {
 public:
  explicit PinnedMemory(const CudaContext* context) : context_(context) {}
  ~PinnedMemory() override;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  Result<uint64_t> create(uint64_t bytes) override;
  void destroy(uint64_t handle, uint64_t bytes) override;
  /// Frees what was set aside; for a thread that may stop.
  void free_unused_blocking();

 private:
  const CudaContext* context_;
  std::mutex mutex_;
  std::vector<uint64_t> unused_;
};

/// Pinned memory by the piece: a ring with a pool behind it. One thread at a time takes.
class PinnedStaging {
 public:
  /// Error: OutOfMemory.
  static Result<std::unique_ptr<PinnedStaging>> make(const CudaContext* context,
                                                     uint64_t ring_bytes);
  ~PinnedStaging() {
    if (ring_.bytes > 0) memory_.destroy(ring_.handle, ring_.bytes);
  }
  PinnedStaging(const PinnedStaging&) = delete;
  PinnedStaging& operator=(const PinnedStaging&) = delete;

  /// The host address of `bytes` (>= 1) that the command at `point` uses. Error: OutOfMemory.
  Result<std::byte*> take(uint64_t bytes, Point point, Point passed);
  uint64_t reserved_bytes() const { return ring_.bytes + pool_.stats().reserved_bytes; }
  /// From any thread that may stop.
  void free_unused_blocking() { memory_.free_unused_blocking(); }

 private:
  explicit PinnedStaging(const CudaContext* context) : memory_(context) {}

  PinnedMemory memory_;
  Block ring_;
  BlockPool pool_{&memory_, UINT64_MAX};
  std::unique_ptr<StagingStore> store_;
};

}  // namespace millrace::cuda
