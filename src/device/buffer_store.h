// BufferStore: the live buffers of a device with their blocks and hazards, and its staging memory.
#pragma once

#include <cstdint>

#include "device/block_pool.h"
#include "device/buffer_table.h"
#include "device/hazard_map.h"
#include "device/staging_store.h"

namespace millrace {

/// What a device knows of a live buffer.
struct StoredBuffer {
  Block block;
  HazardMap hazards;
};

/// The recording side of a device's memory: which block a buffer has, which queued work uses which
/// of its bytes, and where uploads are staged. Never waits. Not thread-safe: its device guards it.
/// `passed` is always the newest passed point, `point` that of the command being recorded.
class BufferStore {
 public:
  /// A block for the staging memory of a store to be. Error: OutOfMemory.
  static Result<Block> make_staging(BlockSource& source, uint64_t staging_bytes);
  /// A store whose blocks take `limit_bytes` at most, staging included. Takes over `staging`, made
  /// by make_staging() for as many bytes; an empty block where the host cannot see what `source`
  /// makes and the device stages elsewhere. `owner` names the device in errors. `source` must
  /// outlive the store.
  BufferStore(BlockSource* source, uint64_t limit_bytes, const Block& staging, const char* owner);
  BufferStore(const BufferStore&) = delete;
  BufferStore& operator=(const BufferStore&) = delete;
  /// Gives everything back to the source; no queued work may use any of it any more.
  ~BufferStore();

  /// Error: OutOfMemory, with what was asked and what is in use.
  Result<BufferId> allocate(uint64_t bytes, const char* label, Point passed);
  /// Gives a buffer's block to the pool, guarded by the buffer's own last use. False: not live.
  bool release(BufferId id);
  /// The record of a live buffer, valid until the next allocate(). Error: not live; `verb` says who
  /// asked.
  Result<StoredBuffer*> find(BufferId id, const char* verb) {
    StoredBuffer* buffer = buffers_.find(id);
    if (buffer == nullptr) return not_live(id, verb);
    return buffer;
  }
  /// The command at `point` uses `slice` of `buffer`.
  static void note(const Slice& slice, StoredBuffer* buffer, Access access, Point point,
                   Point passed) {
    if (access != Access::Write) {
      buffer->hazards.note_read(slice.offset, slice.bytes, point, passed);
    }
    if (access != Access::Read) {
      buffer->hazards.note_write(slice.offset, slice.bytes, point, passed);
    }
  }
  /// Memory for `bytes` that the command at `point` reads: of the ring, or a block of its own where
  /// the ring is too full or too small. Error: OutOfMemory.
  Result<StagedBytes> stage(uint64_t bytes, Point point, Point passed) {
    return staging_.take(bytes, point, passed);
  }
  /// A block for `bytes` (>= 1), contents undefined, that the command at `point` uses and no other
  /// command, so that the next one may have it; its last_use is that of its last user. Error:
  /// OutOfMemory.
  Result<Block> take_scratch(uint64_t bytes, Point point, Point passed);

  void set_limit(uint64_t bytes) { pool_.set_limit(bytes); }
  MemoryStats stats() const {
    MemoryStats stats = pool_.stats();
    stats.staging_bytes = staging_block_.bytes;
    return stats;
  }
  /// Calls visit(label, bytes asked for) for each live buffer.
  template <class Visit>
  void for_each_live(const Visit& visit) {
    const MemoryStats all = pool_.stats();
    buffers_.for_each([&](const StoredBuffer& buffer) {
      visit(all.by_label[buffer.block.label].label, buffer.block.requested);
    });
  }

 private:
  Error not_live(BufferId id, const char* verb) const;

  BlockSource* source_;
  const char* owner_;
  BlockPool pool_;
  BufferTable<StoredBuffer> buffers_;
  Block staging_block_;
  StagingStore staging_;
};

}  // namespace millrace
