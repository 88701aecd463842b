// Barriers: where a command needs a barrier before it, by the ranges that commands declare.
#pragma once

#include <algorithm>

#include "device/buffer_store.h"

namespace millrace::vulkan {

/// Every barrier is one for all memory, so that what matters is only how the newest conflict of a
/// command lies to the last barrier. Not thread-safe: its device guards it.
class Barriers {
 public:
  /// The next command uses `slice` of `buffer`, whose hazards do not know of the command yet.
  void use(const StoredBuffer& buffer, const Slice& slice, Access access) {
    use(access == Access::Read ? buffer.hazards.last_write(slice.offset, slice.bytes)
                               : buffer.hazards.last_use(slice.offset, slice.bytes));
  }
  /// The next command conflicts with the one at `point`.
  void use(Point point) { conflict_ = std::max(conflict_, point); }
  /// Whether the next command, whose point is `next`, needs a barrier before it; the one after it
  /// is the next then.
  bool take(Point next) {
    const bool needed = conflict_ > last_barrier_;
    if (needed) last_barrier_ = next - 1;
    conflict_ = 0;
    return needed;
  }

 private:
  Point last_barrier_ = 0;  // the last command before it
  Point conflict_ = 0;
};

}  // namespace millrace::vulkan
