// CpuMemory: host memory as the blocks of a device.
#pragma once

#include "device/block_pool.h"
#include "device/buffer_store.h"

namespace millrace::cpu {

/// Blocks from the heap, or from the system from 1 MiB on: there, pages never touched take no
/// memory. A handle is the block's address.
class CpuMemory : public BlockSource {
 public:
  Result<uint64_t> create(uint64_t bytes) override;
  void destroy(uint64_t handle, uint64_t bytes) override;
};

inline std::byte* address_of(const Block& block) {
  return reinterpret_cast<std::byte*>(block.handle);
}
inline std::byte* address_of(const StagedBytes& staged) {
  return reinterpret_cast<std::byte*>(staged.handle) + staged.offset;
}

}  // namespace millrace::cpu
