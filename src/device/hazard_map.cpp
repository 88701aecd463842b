// HazardMap: bookkeeping of byte ranges in small sorted vectors.
#include "device/hazard_map.h"

#include <algorithm>

namespace millrace {
namespace {

// A buffer used through more separate ranges than this has neighbours merged; tensors and their
// slices stay far below it.
constexpr size_t kMaxRanges = 32;

}  // namespace

void RangePoints::mark(uint64_t begin, uint64_t end, Point point, Point passed) {
  if (begin >= end) return;
  // Almost every use covers the range of the use before it.
  if (ranges_.size() == 1 && begin <= ranges_[0].begin && ranges_[0].end <= end) {
    ranges_[0] = {begin, end, point};
    return;
  }
  std::erase_if(ranges_, [passed](const Range& range) { return range.point <= passed; });

  // The ranges that overlap the new one are [first, last); their outer ends keep their old points.
  const auto first = std::find_if(ranges_.begin(), ranges_.end(),
                                  [&](const Range& range) { return range.end > begin; });
  const auto last =
      std::find_if(first, ranges_.end(), [&](const Range& range) { return range.begin >= end; });
  Range pieces[3];
  size_t n_pieces = 0;
  if (first != last && first->begin < begin)
    pieces[n_pieces++] = {first->begin, begin, first->point};
  pieces[n_pieces++] = {begin, end, point};
  if (first != last) {
    const Range& tail = *(last - 1);
    if (tail.end > end) pieces[n_pieces++] = {end, tail.end, tail.point};
  }
  const auto at = ranges_.erase(first, last);
  ranges_.insert(at, pieces, pieces + n_pieces);
  if (ranges_.size() > kMaxRanges) merge_neighbours();
}

void RangePoints::merge_neighbours() {
  size_t kept = 0;
  for (size_t i = 0; i < ranges_.size(); i += 2) {
    Range merged = ranges_[i];
    if (i + 1 < ranges_.size()) {
      merged.end = ranges_[i + 1].end;
      merged.point = std::max(merged.point, ranges_[i + 1].point);
    }
    ranges_[kept++] = merged;
  }
  ranges_.resize(kept);
}

Point RangePoints::newest(uint64_t begin, uint64_t end) const {
  if (begin >= end) return 0;
  Point newest = 0;
  for (const Range& range : ranges_) {
    if (range.begin < end && begin < range.end) newest = std::max(newest, range.point);
  }
  return newest;
}

Point HazardMap::last_use(uint64_t begin, uint64_t bytes) const {
  return std::max(writes_.newest(begin, begin + bytes), reads_.newest(begin, begin + bytes));
}

void HazardMap::clear() {
  writes_.clear();
  reads_.clear();
}

}  // namespace millrace
