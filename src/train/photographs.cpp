// Residency of training targets.
#include "train/photographs.h"

#include <algorithm>
#include <chrono>

namespace millrace {
Photographs::Photographs(Device& device, const std::vector<View>& views,
                         const ImageLoaderOptions& loader, uint64_t budget_bytes, uint32_t n_ahead,
                         bool with_structure)
    : device_(device),
      targets_(views, budget_bytes, with_structure),
      n_views_(views.size()),
      n_ahead_(n_ahead),
      looked_at_(views.size()) {
  ImageLoaderOptions options = loader;
  options.cache_bytes = targets_.decoded_budget_bytes();
  loader_ = std::make_unique<ImageLoader>(views, options, device.ledger());
}

Result<void> Photographs::preload_blocking(const std::vector<uint32_t>& first_views,
                                           const std::function<void(uint32_t, uint32_t)>& progress,
                                           const std::atomic<bool>* stop) {
  std::vector<uint32_t> wanted = first_views;
  if (all_resident()) {
    wanted.resize(n_views_);
    for (uint32_t view = 0; view < wanted.size(); ++view) wanted[view] = view;
  }
  const uint32_t ahead = std::min(kPreloadAhead, n_ahead_);
  const auto total = static_cast<uint32_t>(wanted.size());
  for (uint32_t i = 0; i < std::min(ahead, total); ++i) loader_->prefetch(wanted[i]);
  for (uint32_t i = 0; i < total; ++i) {
    if (stop && stop->load(std::memory_order_relaxed)) break;
    if (i + ahead < total) loader_->prefetch(wanted[i + ahead]);
    if (auto target = target_blocking(wanted[i]); !target) return target.error();
    if (progress) progress(i + 1, total);
  }
  return {};
}

void Photographs::prefetch(std::span<const uint32_t> views) {
  if (all_resident()) return;
  uint32_t n_asked = 0;
  for (const uint32_t view : views) {
    if (targets_.find(view).defined()) continue;
    if (++n_asked > n_ahead_) break;
    loader_->prefetch(view);
  }
  // The view that is needed first is touched last. A view that gave way just before its turn would
  // have to be decoded while the host waits.
  for (auto view = views.rbegin(); view != views.rend(); ++view) targets_.touch(*view);
}

Result<Target> Photographs::target_blocking(uint32_t view) {
  if (targets_.find(view).defined()) {
    targets_.touch(view);
    return targets_.find(view);
  }
  const auto loaded = loader_->get_blocking(view);
  if (!loaded) {
    return Error{loaded.error().code,
                 loaded.error().message + "; remove or replace the photograph and start again"};
  }
  const auto begin = std::chrono::steady_clock::now();
  const Image8& image = *loaded.value();
  const Target target = targets_.put(device_, view, image.pixels, image.mask);
  note_mask(view, image.mask);
  ++loads_;
  load_ns_ += static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  return target;
}

void Photographs::note_mask(uint32_t view, const std::vector<uint8_t>& mask) {
  if (mask.empty() || looked_at_[view]) return;
  looked_at_[view] = true;
  uint64_t sum = 0;
  for (const uint8_t value : mask) sum += value;
  mask_means_ += static_cast<double>(sum) / (255.0 * static_cast<double>(mask.size()));
  ++n_masks_;
}

}  // namespace millrace
