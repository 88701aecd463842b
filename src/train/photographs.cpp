// Residency of training targets.
#include "train/photographs.h"

#include <algorithm>
#include <chrono>

#include "loss/photometric.h"

namespace millrace {

Photographs::Photographs(Device& device, const std::vector<View>& views,
                         const ImageLoaderOptions& loader, uint64_t budget_bytes)
    : device_(device), resident_(views.size()), budget_bytes_(budget_bytes) {
  for (const View& view : views) {
    bytes_.push_back(uint64_t{3} * view.camera.width * view.camera.height);
    total_bytes_ += bytes_.back();
  }
  all_resident_ = total_bytes_ <= budget_bytes;
  ImageLoaderOptions options = loader;
  // Where all targets live on the device, a decoded copy is needed only until it is uploaded.
  // Otherwise the budget is shared between decoded images and device targets.
  options.cache_bytes = all_resident_ ? 1 : budget_bytes / 2;
  if (!all_resident_) budget_bytes_ = budget_bytes / 2;
  loader_ = std::make_unique<ImageLoader>(views, options, device.ledger());
}

Result<void> Photographs::preload_blocking(const std::vector<uint32_t>& first_views,
                                           const std::function<void(uint32_t, uint32_t)>& progress,
                                           const std::atomic<bool>* stop) {
  std::vector<uint32_t> wanted = first_views;
  if (all_resident_) {
    wanted.resize(resident_.size());
    for (uint32_t view = 0; view < wanted.size(); ++view) wanted[view] = view;
  }
  constexpr uint32_t kAhead = 4;
  const auto total = static_cast<uint32_t>(wanted.size());
  for (uint32_t i = 0; i < std::min(kAhead, total); ++i) loader_->prefetch(wanted[i]);
  for (uint32_t i = 0; i < total; ++i) {
    if (stop && stop->load(std::memory_order_relaxed)) break;
    if (i + kAhead < total) loader_->prefetch(wanted[i + kAhead]);
    if (auto target = target_blocking(wanted[i]); !target) return target.error();
    if (progress) progress(i + 1, total);
  }
  return {};
}

void Photographs::prefetch(std::span<const uint32_t> views) {
  if (all_resident_) return;
  for (const uint32_t view : views) {
    if (!resident_[view].defined()) loader_->prefetch(view);
  }
  // The view that is needed first is touched last. A view that gave way just before its turn would
  // have to be decoded while the host waits.
  for (auto view = views.rbegin(); view != views.rend(); ++view) {
    if (resident_[*view].defined()) touch(*view);
  }
}

// Makes `view`, which is resident, the last to give way.
void Photographs::touch(uint32_t view) {
  const auto at = std::find(recent_.begin(), recent_.end(), view);
  std::rotate(at, at + 1, recent_.end());
}

Result<Tensor> Photographs::target_blocking(uint32_t view) {
  if (resident_[view].defined()) {
    if (!all_resident_) touch(view);
    return resident_[view];
  }
  const auto loaded = loader_->get_blocking(view);
  if (!loaded) {
    return Error{loaded.error().code,
                 loaded.error().message + "; remove or replace the photograph and start again"};
  }
  const auto begin = std::chrono::steady_clock::now();
  const Image8& image = *loaded.value();
  while (!all_resident_ && !recent_.empty() && resident_bytes_ + bytes_[view] > budget_bytes_) {
    resident_[recent_.front()] = Tensor();
    resident_bytes_ -= bytes_[recent_.front()];
    recent_.erase(recent_.begin());
  }
  resident_[view] = upload_photograph(device_, image.pixels, image.width, image.height);
  resident_bytes_ += bytes_[view];
  if (!all_resident_) recent_.push_back(view);
  ++loads_;
  load_ns_ += static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  return resident_[view];
}

}  // namespace millrace
