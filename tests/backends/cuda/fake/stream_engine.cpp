// The fake stream's thread and memory.
#include "backends/cuda/fake/stream_engine.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace millrace::cuda::fake {
namespace {

constexpr size_t kQueueDepth = 1024;
constexpr int kPoison = 0xcd;
constexpr size_t kPoisoned = size_t{1} << 20;  // bytes at the beginning of a block

}  // namespace

StreamEngine::StreamEngine() : thread_([this] { run(); }) {}

StreamEngine::~StreamEngine() {
  {
    std::lock_guard lock(mutex);
    stopping_ = true;
  }
  changed.notify_all();
  thread_.join();
}

bool StreamEngine::may_run() const {
  if (items_.empty()) return false;
  return items_.front().event != nullptr || !held || allowance > 0 || sticky != Status::Ok;
}

void StreamEngine::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stopping_ || may_run(); });
    if (stopping_) return;
    Item item = std::move(items_.front());
    items_.pop_front();
    if (item.event != nullptr) {
      ++item.event->passed;
      item.event->at = std::chrono::steady_clock::now();
      changed.notify_all();
      continue;
    }
    if (held && allowance > 0) --allowance;
    if (sticky == Status::Ok) {
      lock.unlock();
      const Status status = item.body();
      lock.lock();
      if (sticky == Status::Ok) sticky = status;
    }
    --counts.queued;
    changed.notify_all();
  }
}

Status StreamEngine::push(Body body) {
  std::unique_lock lock(mutex);
  if (sticky != Status::Ok) return sticky;
  if (counts.queued >= kQueueDepth) {
    count_stopping_call();
    changed.wait(lock, [this] { return counts.queued < kQueueDepth; });
  }
  ++counts.queued;
  items_.push_back({std::move(body), nullptr});
  changed.notify_all();
  return Status::Ok;
}

Status StreamEngine::record(FakeEvent* event) {
  std::lock_guard lock(mutex);
  if (sticky != Status::Ok) return sticky;
  ++event->recorded;
  items_.push_back({{}, event});
  changed.notify_all();
  return Status::Ok;
}

Status StreamEngine::synchronize(FakeEvent* event) {
  std::unique_lock lock(mutex);
  count_stopping_call();
  const uint64_t wanted = event->recorded;
  changed.wait(lock, [&] { return sticky != Status::Ok || event->passed >= wanted; });
  return sticky;
}

Status StreamEngine::allocate(uint64_t bytes, BlockMap* blocks, uint64_t* address) {
  std::lock_guard lock(mutex);
  if (sticky != Status::Ok) return sticky;
  ++counts.allocations;
  if (allocation_rule.applies()) return Status::OutOfMemory;
  void* block = ::operator new (bytes, std::align_val_t{512});
  std::memset(block, kPoison, std::min<size_t>(bytes, kPoisoned));
  *address = reinterpret_cast<uint64_t>(block);
  (*blocks)[*address] = bytes;
  return Status::Ok;
}

Status StreamEngine::free(BlockMap* blocks, uint64_t address) {
  std::lock_guard lock(mutex);
  const auto found = blocks->find(address);
  if (found == blocks->end()) return Status::InvalidValue;
  blocks->erase(found);
  ::operator delete (reinterpret_cast<void*>(address), std::align_val_t{512});
  return sticky;
}

bool StreamEngine::lies_in(const BlockMap& blocks, uint64_t address, uint64_t bytes) {
  std::lock_guard lock(mutex);
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second;
}

uint64_t StreamEngine::bytes_behind(uint64_t address) {
  std::lock_guard lock(mutex);
  auto after = device_blocks.upper_bound(address);
  if (after == device_blocks.begin()) return 0;
  --after;
  const uint64_t end = after->first + after->second;
  return end > address ? end - address : 0;
}

}  // namespace millrace::cuda::fake
