// CommandQueue: chunks and their reuse.
#include "backends/cpu/command_queue.h"

#include <utility>

namespace millrace::cpu {

CommandQueue::CommandQueue()
    : oldest_(std::make_unique<Chunk>()), newest_(oldest_.get()), current_(oldest_.get()) {
  newest_->first_point = 1;
  spare_.reserve(kMaxSpare);
  for (size_t i = 0; i < kFirstSpare; ++i) spare_.push_back(std::make_unique<Chunk>());
}

Command& CommandQueue::next_slot(Point finished) {
  if (n_in_newest_ == kChunk) add_chunk(finished);
  return newest_->commands[n_in_newest_];
}

void CommandQueue::add_chunk(Point finished) {
  // The worker has left the oldest chunk for good once it finished a command of the next one.
  while (oldest_->next != nullptr && finished >= oldest_->next->first_point) {
    std::unique_ptr<Chunk> done = std::move(oldest_);
    oldest_ = std::move(done->next);
    if (spare_.size() < kMaxSpare) spare_.push_back(std::move(done));
  }
  std::unique_ptr<Chunk> chunk;
  if (spare_.empty()) {
    chunk = std::make_unique<Chunk>();
  } else {
    chunk = std::move(spare_.back());
    spare_.pop_back();
  }
  chunk->first_point = last_queued() + 1;
  newest_->next = std::move(chunk);
  newest_ = newest_->next.get();
  n_in_newest_ = 0;
}

Point CommandQueue::publish() {
  ++n_in_newest_;
  const Point point = queued_.load(std::memory_order_relaxed) + 1;
  queued_.store(point, std::memory_order_release);
  return point;
}

Command& CommandQueue::take() {
  if (n_taken_ == kChunk) {
    current_ = current_->next.get();
    n_taken_ = 0;
  }
  return current_->commands[n_taken_++];
}

}  // namespace millrace::cpu
