// StagingStore: the choice between the ring and a block.
#include "device/staging_store.h"

namespace millrace {
namespace {

// A transfer larger than this part of the ring gets a block of its own, so that one image does not
// push out everything else.
constexpr uint64_t kRingPart = 4;

}  // namespace

Result<StagedBytes> StagingStore::take(uint64_t bytes, Point point, Point passed) {
  if (bytes <= ring_.capacity() / kRingPart) {
    const auto offset = ring_.take(bytes, point, passed);
    if (offset) return StagedBytes{ring_block_.handle, *offset};
  }
  MILLRACE_ASSIGN(const Block block,
                  pool_->take(bytes, "staging", passed, BlockPool::Need::Completed));
  pool_->give_back(block, point);
  return StagedBytes{block.handle, 0};
}

}  // namespace millrace
