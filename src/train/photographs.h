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
#include "tensor/tensor.h"

namespace millrace {

class Photographs {
 public:
  /// `views`: the training views, in the order of the sampler's numbers.
  Photographs(Device& device, const std::vector<View>& views, const ImageLoaderOptions& loader,
              uint64_t budget_bytes);

  /// Decodes ahead of the first step: everything if it fits, else the beginning of the order given.
  /// Errors: the file's, with its path.
  /// Ends early, without an error, once `stop` is set.
  Result<void> preload_blocking(const std::vector<uint32_t>& first_views,
                                const std::function<void(uint32_t, uint32_t)>& progress,
                                const std::atomic<bool>* stop = nullptr);
  /// Says which views come next, the first one first; never waits. They are decoded where they must
  /// be, and what is on the device for them gives way last.
  void prefetch(std::span<const uint32_t> views);
  /// The target of `view`, [3,H,W] U8. Waits for a decode (reason Decode) only if prefetching fell
  /// behind. The tensor stays valid while it is held.
  Result<Tensor> target_blocking(uint32_t view);
  /// Views that were asked for and whose decode has not ended.
  size_t undecoded() const { return loader_->undecoded(); }
  /// Whether every photograph stays on the device.
  bool all_resident() const { return all_resident_; }
  /// Bytes of all photographs as targets.
  uint64_t total_bytes() const { return total_bytes_; }
  /// Photographs put onto the device so far, and the host's time for that, decoding apart.
  uint64_t loads() const { return loads_; }
  double load_seconds() const { return static_cast<double>(load_ns_) * 1e-9; }

 private:
  Device& device_;
  std::unique_ptr<ImageLoader> loader_;
  std::vector<uint64_t> bytes_;
  std::vector<Tensor> resident_;
  void touch(uint32_t view);

  std::vector<uint32_t> recent_;  // resident views, first to go first (only when not all fit)
  uint64_t budget_bytes_ = 0, resident_bytes_ = 0, total_bytes_ = 0;
  uint64_t loads_ = 0, load_ns_ = 0;
  bool all_resident_ = false;
};

}  // namespace millrace
