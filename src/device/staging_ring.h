// StagingRing: which part of a staging buffer is free, in the order in which the device frees it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/device.h"

namespace millrace {

/// Hands out slices of a buffer of `capacity` bytes in ring order. A slice belongs to a point and
/// is free again once that point has passed; slices are reclaimed oldest first. Holds no memory
/// itself and never waits. Not thread-safe: its device guards it.
class StagingRing {
 public:
  explicit StagingRing(uint64_t capacity) : capacity_(capacity) { slices_.reserve(kRoom); }
  uint64_t capacity() const { return capacity_; }

  /// The offset of a free slice of `bytes` (1 to capacity), in use until `point` has passed;
  /// nothing when the ring is full. Points must not decrease.
  std::optional<uint64_t> take(uint64_t bytes, Point point, Point passed);
  /// After take() returned nothing: the oldest point whose passing makes room for `bytes`.
  Point point_that_frees(uint64_t bytes) const;
  uint64_t in_use_bytes() const { return head_ - tail_; }

 private:
  struct Slice {
    uint64_t end;  // position
    Point point;
  };

  /// Where `bytes` would begin: at the head, or at the start of the buffer if they would cross its
  /// end.
  uint64_t begin_for(uint64_t bytes) const;

  // Slices that the list has room for at once, so that it does not grow in some later step.
  static constexpr size_t kRoom = 256;

  uint64_t capacity_;
  // Positions count up for ever; offset = position % capacity.
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
  std::vector<Slice> slices_;  // from first_ on, oldest first
  size_t first_ = 0;
};

}  // namespace millrace
