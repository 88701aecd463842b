// Photographs: training targets on the device as 8-bit planes. All of them if they fit the budget,
// otherwise the ones that the next steps need.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/image_loader.h"
#include "train/target_cache.h"

namespace millrace {

class Photographs {
 public:
  /// Views asked for ahead of their turn, at most.
  static constexpr uint32_t kMostAhead = 16, kPreloadAhead = 4;

  /// `views`: the training views, in the order of the sampler's numbers. `n_ahead`: how many views
  /// that are not on the device are decoded before their turn. `with_structure`: targets have their
  /// ridge map.
  Photographs(Device& device, const std::vector<View>& views, const ImageLoaderOptions& loader,
              uint64_t budget_bytes, uint32_t n_ahead = kMostAhead, bool with_structure = false);

  /// Decodes ahead of the first step: everything if it fits, else the beginning of the order given.
  /// Errors: the file's, with its path.
  /// Ends early, without an error, once `stop` is set.
  Result<void> preload_blocking(const std::vector<uint32_t>& first_views,
                                const std::function<void(uint32_t, uint32_t)>& progress,
                                const std::atomic<bool>* stop = nullptr);
  /// Says which views come next, the first one first; never waits. They are decoded where they must
  /// be, and what is on the device for them gives way last.
  void prefetch(std::span<const uint32_t> views);
  /// The target of `view`. Waits for a decode (reason Decode) only if prefetching fell behind. It
  /// stays valid while it is held.
  Result<Target> target_blocking(uint32_t view);
  /// Views that were asked for and whose decode has not ended.
  size_t undecoded() const { return loader_->undecoded(); }
  /// Whether every photograph stays on the device.
  bool all_resident() const { return targets_.all_resident(); }
  /// Bytes of all photographs as targets.
  uint64_t total_bytes() const { return targets_.total_bytes(); }
  /// Photographs put onto the device so far, and the host's time for that, decoding apart.
  uint64_t loads() const { return loads_; }
  double load_seconds() const { return static_cast<double>(load_ns_) * 1e-9; }
  /// Of the masks that were seen so far, in 0 to 1; how many those are.
  double mean_mask() const { return n_masks_ > 0 ? mask_means_ / n_masks_ : 1; }
  uint32_t n_masks() const { return n_masks_; }

 private:
  void note_mask(uint32_t view, const std::vector<uint8_t>& mask);

  Device& device_;
  TargetCache targets_;
  size_t n_views_;
  uint32_t n_ahead_;
  std::unique_ptr<ImageLoader> loader_;
  uint64_t loads_ = 0, load_ns_ = 0;
  std::vector<bool> looked_at_;  // views whose mask was
  double mask_means_ = 0;
  uint32_t n_masks_ = 0;
};

}  // namespace millrace
