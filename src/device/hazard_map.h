// HazardMap: which points of the timeline last wrote and last read each byte range of one buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.h"

namespace millrace {

/// The newest point of each byte range of a buffer, for one kind of use. Points must not decrease
/// from call to call. Never forgets a point that has not passed; may name a newer one than the true
/// one when ranges are many (they are merged), which is safe.
class RangePoints {
 public:
  RangePoints() { ranges_.reserve(kFirstRanges); }
  /// Range [begin, end) was used at `point`. Ranges whose point is <= `passed` are forgotten.
  void mark(uint64_t begin, uint64_t end, Point point, Point passed);
  /// The newest point that used any byte of [begin, end), or 0.
  Point newest(uint64_t begin, uint64_t end) const;
  void clear() { ranges_.clear(); }
  size_t range_count() const { return ranges_.size(); }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    Point point;
  };

  // A buffer's record is reused by later buffers: room for what tensors and their slices need, so
  // that it does not grow in some later step.
  static constexpr size_t kFirstRanges = 4;

  void merge_neighbours();

  std::vector<Range> ranges_;  // disjoint, by begin
};

/// Last writers and last readers of one buffer, by byte range.
class HazardMap {
 public:
  void note_read(uint64_t begin, uint64_t bytes, Point point, Point passed) {
    reads_.mark(begin, begin + bytes, point, passed);
  }
  void note_write(uint64_t begin, uint64_t bytes, Point point, Point passed) {
    writes_.mark(begin, begin + bytes, point, passed);
  }
  /// The last point that writes any byte of the range, or 0: what a reader must wait for.
  Point last_write(uint64_t begin, uint64_t bytes) const {
    return writes_.newest(begin, begin + bytes);
  }
  /// The last point that writes or reads any byte of the range, or 0: what a writer must wait for.
  Point last_use(uint64_t begin, uint64_t bytes) const;
  void clear();

 private:
  RangePoints writes_;
  RangePoints reads_;
};

}  // namespace millrace
