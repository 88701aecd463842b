// TargetCache: training targets on the device within a budget of bytes, the ones used last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/mask_finder.h"
#include "tensor/tensor.h"

namespace millrace {

/// What a step compares its image with.
struct Target {
  Tensor pixels;     // [3,H,W] U8
  Tensor structure;  // [H,W] U8, its ridge map, where structures are weighed
  Tensor mask;       // [H,W] U8, where there is one
  bool defined() const { return pixels.defined(); }
};

/// Targets of all views if they fit, else half of the budget for targets; the other half is for
/// decoded photographs on the host.
class TargetCache {
 public:
  TargetCache(const std::vector<View>& views, uint64_t budget_bytes, bool with_structure = false);

  /// The target of `view`, or an undefined one.
  const Target& find(uint32_t view) const { return resident_[view]; }
  /// Makes `view`, if it is resident, the last to give way.
  void touch(uint32_t view);
  /// Uploads the target of a view that is not resident, [height, width, 3] of its camera's size,
  /// and [height, width] of its mask if it has one; others give way.
  Target put(Device& device, uint32_t view, std::span<const uint8_t> pixels,
             std::span<const uint8_t> mask = {});

  bool all_resident() const { return all_resident_; }
  /// Of all views as targets.
  uint64_t total_bytes() const { return total_bytes_; }
  /// What decoded photographs on the host may take; where all targets stay on the device, a decoded
  /// copy is needed only until it is uploaded.
  uint64_t decoded_budget_bytes() const { return all_resident_ ? 1 : budget_bytes_; }

 private:
  struct Size {
    uint32_t width, height;
    bool has_mask;
    uint64_t n_planes;
    uint64_t bytes() const { return n_planes * width * height; }
  };
  bool with_structure_;
  std::vector<Size> sizes_;
  std::vector<Target> resident_;
  std::vector<uint32_t> recent_;  // resident views, first to go first (only when not all fit)
  uint64_t budget_bytes_, resident_bytes_ = 0, total_bytes_ = 0;
  bool all_resident_ = false;
};

}  // namespace millrace
