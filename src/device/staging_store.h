// StagingStore: host-visible memory for queued transfers, from a ring or in blocks of their own.
#pragma once

#include <cstdint>

#include "device/block_pool.h"
#include "device/staging_ring.h"

namespace millrace {

/// Memory that the host touches at once and one queued command uses.
struct StagedBytes {
  uint64_t handle = 0;  // block
  uint64_t offset = 0;  // in the block
};

/// Hands out memory for transfers; never waits. Run-ahead bounds how much there can be. Not
/// thread-safe: its device guards it.
class StagingStore {
 public:
  /// `ring` stays its owner's and must outlive this, as must `pool`, which serves what the ring
  /// has no room for.
  StagingStore(BlockPool* pool, const Block& ring)
      : pool_(pool), ring_block_(ring), ring_(ring.requested) {}

  /// Memory for `bytes` (>= 1) that the command at `point` uses: of the ring, or a completed block
  /// where the ring is too full or too small. Error: OutOfMemory.
  Result<StagedBytes> take(uint64_t bytes, Point point, Point passed);

 private:
  BlockPool* pool_;
  Block ring_block_;
  StagingRing ring_;
};

}  // namespace millrace
