// CommandRing: commands in order, in memory that is used again.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/cuda/command.h"

namespace millrace::cuda {

/// A first-in first-out list that grows to the longest it ever was. Not thread-safe.
class CommandRing {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  const Command& front() const { return slots_[first_]; }
  void push_back(const Command& command) {
    if (size_ == slots_.size()) grow();
    slots_[(first_ + size_++) % slots_.size()] = command;
  }
  void pop_front() {
    first_ = (first_ + 1) % slots_.size();
    --size_;
  }

 private:
  static constexpr size_t kFirstSlots = 64;

  void grow() {
    std::vector<Command> larger(slots_.empty() ? kFirstSlots : 2 * slots_.size());
    for (size_t i = 0; i < size_; ++i) larger[i] = slots_[(first_ + i) % slots_.size()];
    slots_.swap(larger);
    first_ = 0;
  }

  std::vector<Command> slots_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace millrace::cuda
