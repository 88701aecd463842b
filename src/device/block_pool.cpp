// BlockPool: choice of blocks, limits and counts.
#include "device/block_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace millrace {
namespace {

constexpr uint64_t kSmallest = 256;
constexpr uint64_t kBig = uint64_t{1} << 20;
constexpr uint64_t kBigStep = uint64_t{64} << 10;
// Free blocks beyond this (or a sixteenth of what is in use) are given back when a new one is made:
// more than the scratch of a step, less than buffers that were outgrown.
constexpr uint64_t kKeepFree = uint64_t{64} << 20;

// Free blocks that the list has room for at once, so that it does not grow in some later step.
constexpr size_t kRoom = 256;

uint64_t round_up(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

// A big block may serve a request up to a quarter smaller than itself.
bool serves(uint64_t block, uint64_t wanted) {
  return block >= wanted && block <= (wanted >= kBig ? wanted + wanted / 4 : wanted);
}

std::string in_mib(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

uint64_t BlockPool::block_bytes(uint64_t requested) {
  if (requested >= kBig) return round_up(requested, kBigStep);
  if (requested <= kSmallest) return kSmallest;
  // Four classes between two powers of two, each a multiple of 256 bytes.
  const uint64_t step = std::max(kSmallest, std::bit_floor(requested - 1) / 4);
  return round_up(requested, step);
}

BlockPool::BlockPool(BlockSource* source, uint64_t limit_bytes)
    : source_(source), limit_bytes_(limit_bytes) {
  stats_.limit_bytes = limit_bytes;
  free_.reserve(kRoom);
}

BlockPool::~BlockPool() {
  for (const FreeBlock& block : free_) source_->destroy(block.handle, block.bytes);
}

Result<Block> BlockPool::take(uint64_t bytes, const char* label, Point passed, Need need) {
  Block block{.bytes = block_bytes(bytes), .requested = bytes};
  if (!take_free(block.bytes, passed, need, &block)) {
    auto made = take_new(block.bytes, passed, &block);
    if (!made.ok()) {
      return Error{
          ErrorCode::OutOfMemory,
          fmt::format("out of device memory: {} asked for '{}', {} in use, {} reserved, limit {} "
                      "({}). Use fewer Gaussians, smaller images, or a device with more memory",
                      in_mib(bytes), label, in_mib(stats_.in_use_bytes),
                      in_mib(stats_.reserved_bytes), in_mib(limit_bytes_), made.error().message)};
    }
  }
  block.label = label_index(label);
  count_in_use(block.label, bytes);
  return block;
}

bool BlockPool::take_free(uint64_t bytes, Point passed, Need need, Block* block) {
  // Sorted by last use, so completed blocks come first and the longest idle is met first.
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (need == Need::Completed && it->last_use > passed) return false;
    if (!serves(it->bytes, bytes)) continue;
    block->handle = it->handle;
    block->bytes = it->bytes;
    block->last_use = it->last_use;
    free_bytes_ -= it->bytes;
    free_.erase(it);
    return true;
  }
  return false;
}

Result<void> BlockPool::take_new(uint64_t bytes, Point passed, Block* block) {
  drop_surplus(passed);
  Error refusal{ErrorCode::OutOfMemory, "the limit would be passed"};
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt == 1) trim(passed);
    if (bytes > limit_bytes_ || stats_.reserved_bytes > limit_bytes_ - bytes) continue;
    auto handle = source_->create(bytes);
    if (handle.ok()) {
      block->handle = handle.value();
      block->bytes = bytes;
      block->last_use = 0;
      add_reserved(bytes);
      return {};
    }
    refusal = handle.error();
  }
  return refusal;
}

void BlockPool::give_back(const Block& block, Point last_use) {
  stats_.in_use_bytes -= block.requested;
  stats_.by_label[block.label].bytes -= block.requested;
  free_bytes_ += block.bytes;
  const auto at =
      std::upper_bound(free_.begin(), free_.end(), last_use,
                       [](Point point, const FreeBlock& other) { return point < other.last_use; });
  free_.insert(at, {block.handle, block.bytes, last_use});
}

uint64_t BlockPool::trim(Point passed) {
  uint64_t bytes = 0;
  size_t n = 0;
  for (; n < free_.size() && free_[n].last_use <= passed; ++n) {
    source_->destroy(free_[n].handle, free_[n].bytes);
    bytes += free_[n].bytes;
  }
  free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(n));
  free_bytes_ -= bytes;
  stats_.reserved_bytes -= bytes;
  return bytes;
}

void BlockPool::drop_surplus(Point passed) {
  const uint64_t keep = std::max(kKeepFree, stats_.in_use_bytes / 16);
  size_t n = 0;
  for (; n < free_.size() && free_bytes_ > keep && free_[n].last_use <= passed; ++n) {
    source_->destroy(free_[n].handle, free_[n].bytes);
    free_bytes_ -= free_[n].bytes;
    stats_.reserved_bytes -= free_[n].bytes;
  }
  free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(n));
}

void BlockPool::add_reserved(uint64_t bytes) {
  stats_.reserved_bytes += bytes;
  stats_.peak_reserved_bytes = std::max(stats_.peak_reserved_bytes, stats_.reserved_bytes);
}

MemoryStats BlockPool::stats() const { return stats_; }

uint32_t BlockPool::label_index(const char* label) {
  for (size_t i = 0; i < stats_.by_label.size(); ++i) {
    if (stats_.by_label[i].label == label) return static_cast<uint32_t>(i);
  }
  stats_.by_label.push_back({.label = label});
  return static_cast<uint32_t>(stats_.by_label.size() - 1);
}

void BlockPool::count_in_use(uint32_t label, uint64_t bytes) {
  stats_.in_use_bytes += bytes;
  stats_.peak_in_use_bytes = std::max(stats_.peak_in_use_bytes, stats_.in_use_bytes);
  MemoryStats::Kind& kind = stats_.by_label[label];
  kind.bytes += bytes;
  kind.peak_bytes = std::max(kind.peak_bytes, kind.bytes);
}

}  // namespace millrace
