// BlockPool: blocks of device memory kept for reuse, and the count of what is in use by label.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"

namespace millrace {

/// Where a pool gets its blocks from: a driver's or the system's allocator.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  /// A new block of `bytes`, as a handle that means something to the backend. Error: OutOfMemory.
  virtual Result<uint64_t> create(uint64_t bytes) = 0;
  /// Gives a block back that no queued work uses any more.
  virtual void destroy(uint64_t handle, uint64_t bytes) = 0;
};

/// A block handed out by a pool.
struct Block {
  uint64_t handle = 0;
  uint64_t bytes = 0;      // of the block, >= requested_bytes
  uint64_t requested = 0;  // bytes asked for
  uint32_t label = 0;      // index of its label in the pool
  Point last_use = 0;      // queued work may use the block up to this point
};

/// Blocks by size. A request takes a completed block first (one whose own last use has passed), the
/// one that was idle longest; then one still in use by queued work, which is safe for work that
/// is queued later; then a new one. Not thread-safe: its device guards it.
class BlockPool {
 public:
  /// `limit_bytes` bounds all blocks together, in use or not. `source` must outlive the pool.
  BlockPool(BlockSource* source, uint64_t limit_bytes);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  enum class Need : uint8_t {
    Any,        // written by queued work only
    Completed,  // written by the host at once
  };
  /// A block for `bytes` (>= 1). Past the limit or refused by the source, completed free blocks are
  /// given back and the request is tried once more. Error: OutOfMemory with the figures.
  Result<Block> take(uint64_t bytes, const char* label, Point passed, Need need = Need::Any);
  /// Returns a block that queued work uses up to `last_use`.
  void give_back(const Block& block, Point last_use);
  /// Gives free blocks whose last use is <= `passed` back to the source; returns their bytes.
  uint64_t trim(Point passed);

  /// From now on `bytes` bounds all blocks together; what is reserved already stays.
  void set_limit(uint64_t bytes) { stats_.limit_bytes = limit_bytes_ = bytes; }
  /// Counts memory that is reserved beside the pool's blocks (a staging ring).
  void add_reserved(uint64_t bytes);
  MemoryStats stats() const;

  /// The size of the block that serves a request: at most 25 % more (at least 256 bytes); 64 KiB
  /// steps from 1 MiB on.
  static uint64_t block_bytes(uint64_t requested);

 private:
  struct FreeBlock {
    uint64_t handle;
    uint64_t bytes;
    Point last_use;
  };

  bool take_free(uint64_t bytes, Point passed, Need need, Block* block);
  Result<void> take_new(uint64_t bytes, Point passed, Block* block);
  void drop_surplus(Point passed);
  uint32_t label_index(const char* label);
  void count_in_use(uint32_t label, uint64_t bytes);

  BlockSource* source_;
  uint64_t limit_bytes_;
  uint64_t free_bytes_ = 0;
  std::vector<FreeBlock> free_;  // by last use, oldest first
  MemoryStats stats_;
};

}  // namespace millrace
