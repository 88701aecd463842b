// Which targets are on the device.
#include "train/target_cache.h"

#include <algorithm>

#include "loss/photometric.h"
#include "loss/pixel_weights.h"

namespace millrace {

TargetCache::TargetCache(const std::vector<View>& views, uint64_t budget_bytes, bool with_structure)
    : with_structure_(with_structure), resident_(views.size()) {
  for (const View& view : views) {
    sizes_.push_back({view.camera.width, view.camera.height, has_mask(view),
                      n_target_planes(view) + (with_structure ? 1 : 0)});
    total_bytes_ += sizes_.back().bytes();
  }
  all_resident_ = total_bytes_ <= budget_bytes;
  budget_bytes_ = all_resident_ ? budget_bytes : budget_bytes / 2;
}

void TargetCache::touch(uint32_t view) {
  const auto at = std::find(recent_.begin(), recent_.end(), view);
  if (at != recent_.end()) std::rotate(at, at + 1, recent_.end());
}

Target TargetCache::put(Device& device, uint32_t view, std::span<const uint8_t> pixels,
                        std::span<const uint8_t> mask) {
  const Size size = sizes_[view];
  while (!all_resident_ && !recent_.empty() && resident_bytes_ + size.bytes() > budget_bytes_) {
    resident_[recent_.front()] = Target();
    resident_bytes_ -= sizes_[recent_.front()].bytes();
    recent_.erase(recent_.begin());
  }
  Target& target = resident_[view];
  target.pixels = upload_photograph(device, pixels, size.width, size.height);
  if (with_structure_) target.structure = ridge_map(target.pixels, size.width, size.height);
  if (size.has_mask) {
    target.mask = Tensor::from_host(device, mask, Shape{size.height, size.width}, "photographs");
  }
  resident_bytes_ += size.bytes();
  if (!all_resident_) recent_.push_back(view);
  return resident_[view];
}

}  // namespace millrace
