// Vulkan memory: blocks out of slabs or allocations of their own, and host-visible memory by the
// piece.
#pragma once

#include <memory>
#include <vector>

#include "backends/vulkan/vulkan_context.h"
#include "device/block_pool.h"
#include "device/staging_store.h"

namespace millrace::vulkan {

/// A stretch of memory with one buffer over all of it.
struct Slab {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t address = 0;         // on the device
  std::byte* mapped = nullptr;  // null where the host keeps out
  uint64_t bytes = 0;
  struct Gap {
    uint64_t offset, bytes;
  };
  std::vector<Gap> gaps;  // free stretches, by offset; none touch
};

/// A range of a slab: what the handle of a block points to.
struct VulkanBlock {
  Slab* slab = nullptr;
  uint64_t offset = 0;

  VkBuffer buffer() const { return slab->buffer; }
  uint64_t address() const { return slab->address + offset; }
  std::byte* mapped() const { return slab->mapped == nullptr ? nullptr : slab->mapped + offset; }
};

inline const VulkanBlock& block_of(uint64_t handle) {
  return *reinterpret_cast<const VulkanBlock*>(handle);
}

/// Memory of one kind. Small blocks share slabs; a large one is an allocation of its own. A handle
/// points to a VulkanBlock. Not thread-safe: its device guards it.
class VulkanMemory : public BlockSource {
 public:
  /// `slab_bytes` is the size of a shared slab; blocks from an eighth of it on are on their own.
  VulkanMemory(VulkanContext* context, MemoryUse use, uint64_t slab_bytes);
  ~VulkanMemory() override;
  VulkanMemory(const VulkanMemory&) = delete;
  VulkanMemory& operator=(const VulkanMemory&) = delete;

  /// `bytes` is a multiple of 256, as those of a BlockPool are. Errors: OutOfMemory, with the
  /// driver's word or the limit of the device that would be passed.
  Result<uint64_t> create(uint64_t bytes) override;
  void destroy(uint64_t handle, uint64_t bytes) override;
  const MemoryKind& kind() const { return kind_; }
  /// Slabs and allocations alive.
  size_t n_slabs() const { return slabs_.size(); }

 private:
  Result<Slab*> make_slab(uint64_t bytes);
  Result<void> fill_slab(Slab* slab);
  void free_slab(Slab* slab);
  Result<uint64_t> create_in_slab(uint64_t bytes);

  VulkanContext* context_;
  MemoryKind kind_;
  uint64_t slab_bytes_;
  std::vector<std::unique_ptr<Slab>> slabs_;
};

/// Host-visible memory by the piece: a ring with a pool behind it, reclaimed oldest first. One
/// thread at a time takes.
class HostMemory {
 public:
  struct Piece {
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t offset = 0;   // in the buffer
    uint64_t address = 0;  // on the device
    std::byte* mapped = nullptr;
  };

  /// Error: OutOfMemory.
  static Result<std::unique_ptr<HostMemory>> make(VulkanContext* context, MemoryUse use,
                                                  uint64_t ring_bytes);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// Memory for `bytes` (>= 1) that the command at `point` uses. Error: OutOfMemory.
  Result<Piece> take(uint64_t bytes, Point point, Point passed);
  /// Its reserved bytes count as those of the device.
  MemoryStats stats() const { return pool_.stats(); }

 private:
  HostMemory(VulkanContext* context, MemoryUse use, uint64_t ring_bytes)
      : memory_(context, use, ring_bytes) {}

  VulkanMemory memory_;
  Block ring_;
  BlockPool pool_{&memory_, UINT64_MAX};
  std::unique_ptr<StagingStore> store_;
};

}  // namespace millrace::vulkan
