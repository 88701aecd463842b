// BufferStore: allocation, release and staging.
#include "device/buffer_store.h"

#include <fmt/format.h>

namespace millrace {

Result<Block> BufferStore::make_staging(BlockSource& source, uint64_t staging_bytes) {
  const uint64_t bytes = BlockPool::block_bytes(staging_bytes);
  MILLRACE_ASSIGN(const uint64_t handle, source.create(bytes));
  return Block{.handle = handle, .bytes = bytes, .requested = staging_bytes};
}

BufferStore::BufferStore(BlockSource* source, uint64_t limit_bytes, const Block& staging,
                         const char* owner)
    : source_(source),
      owner_(owner),
      pool_(source, limit_bytes),
      staging_block_(staging),
      staging_(&pool_, staging) {
  pool_.add_reserved(staging.bytes);
}

BufferStore::~BufferStore() {
  buffers_.for_each([this](const StoredBuffer& buffer) {
    source_->destroy(buffer.block.handle, buffer.block.bytes);
  });
  if (staging_block_.bytes > 0) source_->destroy(staging_block_.handle, staging_block_.bytes);
}

Result<BufferId> BufferStore::allocate(uint64_t bytes, const char* label, Point passed) {
  MILLRACE_ASSIGN(const Block block, pool_.take(bytes, label, passed));
  const BufferId id = buffers_.insert();
  if (!id) {
    pool_.give_back(block, block.last_use);
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("{} buffers are live, as many as a device can hold; release some",
                             buffers_.size())};
  }
  StoredBuffer& buffer = *buffers_.find(id);
  buffer.block = block;
  buffer.hazards.clear();
  // The block's last owner may still use it: the host keeps out until then.
  if (block.last_use > passed) buffer.hazards.note_read(0, block.bytes, block.last_use, passed);
  return id;
}

bool BufferStore::release(BufferId id) {
  const StoredBuffer* buffer = buffers_.find(id);
  if (buffer == nullptr) return false;
  pool_.give_back(buffer->block, buffer->hazards.last_use(0, buffer->block.bytes));
  buffers_.erase(id);
  return true;
}

Error BufferStore::not_live(BufferId id, const char* verb) const {
  return {ErrorCode::Internal,
          fmt::format("{}: {} names buffer {:#x}, which is not live", owner_, verb, id.value)};
}

Result<Block> BufferStore::take_scratch(uint64_t bytes, Point point, Point passed) {
  MILLRACE_ASSIGN(const Block block, pool_.take(bytes, "scratch", passed));
  pool_.give_back(block, point);
  return block;
}

}  // namespace millrace
