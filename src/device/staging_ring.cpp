// StagingRing: positions and reclaiming.
#include "device/staging_ring.h"

namespace millrace {
namespace {

// Slices begin at multiples of this, so that any element type is aligned.
constexpr uint64_t kAlign = 64;

}  // namespace

uint64_t StagingRing::begin_for(uint64_t bytes) const {
  const uint64_t begin = (head_ + kAlign - 1) / kAlign * kAlign;
  const uint64_t offset = begin % capacity_;
  return offset + bytes <= capacity_ ? begin : begin + (capacity_ - offset);
}

std::optional<uint64_t> StagingRing::take(uint64_t bytes, Point point, Point passed) {
  while (first_ < slices_.size() && slices_[first_].point <= passed) tail_ = slices_[first_++].end;
  if (first_ == slices_.size()) {
    // Nothing is in use: begin again at the start, where no slice has to skip the end.
    slices_.clear();
    first_ = 0;
    head_ = tail_ = 0;
  } else if (first_ > slices_.size() / 2) {
    slices_.erase(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  const uint64_t begin = begin_for(bytes);
  if (begin + bytes - tail_ > capacity_) return std::nullopt;
  head_ = begin + bytes;
  slices_.push_back({head_, point});
  return begin % capacity_;
}

Point StagingRing::point_that_frees(uint64_t bytes) const {
  const uint64_t end = begin_for(bytes) + bytes;
  for (size_t i = first_; i < slices_.size(); ++i) {
    if (end - slices_[i].end <= capacity_) return slices_[i].point;
  }
  // Only an empty ring has room: the skipped end of the buffer is in the way.
  return slices_.empty() ? 0 : slices_.back().point;
}

}  // namespace millrace
