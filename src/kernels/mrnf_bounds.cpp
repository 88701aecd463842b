// The scene's bounds for MRNF (TRAINING.md 1.5): a box of percentiles of the means, and the median
// size of a row, by sorting.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr uint32_t kExtent = 3;  // mode: sizes of rows; below it the axis
constexpr float kEpsilon = 1.1920929e-7f;

// Numbers as words of the same order.
uint32_t ordered(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
float number_of(uint32_t key) {
  return std::bit_cast<float>(key & 0x80000000u ? key & 0x7FFFFFFFu : ~key);
}

}  // namespace

// mrnf_bounds_keys: one number of each row as a word that sorts like it; rows without a Gaussian
// come last.
// Bindings  step r, control r, geometry r, keys w [cap rows] u32. mode: an axis, or 3 for the mean
//           of the log scales.
void mrnf_bounds_keys(const KernelCall& call) {
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const uint32_t mode = call.params_as<RowsParams>().mode;
  const auto* geometry = call.buffer<const float>(2);
  auto* keys = call.buffer<uint32_t>(3);
  parallel_for(control.counts.rows, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      const auto lane = [&](uint32_t l) { return geometry[row_index(row, l, kGeometryLanes)]; };
      bool is_free = true;
      for (uint32_t k = 0; k < 4; ++k) is_free &= lane(kLaneRotation + k) == 0;
      const float x = mode == kExtent
                          ? (lane(kLaneScale) + lane(kLaneScale + 1) + lane(kLaneScale + 2)) / 3
                          : lane(kLaneMean + mode);
      keys[row] = is_free || !std::isfinite(x) ? ~0u : ordered(x);
    }
  });
}

// mrnf_bounds: what the sorted keys of one mode say; the last mode completes the box.
// Bindings  step r, control x (bounds), sorted r [cap rows] u32.
// Writes    nothing unless the transaction was accepted. A box too small to be one is not valid and
//           leaves the median size as it was.
void mrnf_bounds(const KernelCall& call) {
  Control& control = *call.buffer<Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const uint32_t mode = call.params_as<RowsParams>().mode;
  const auto* sorted = call.buffer<const uint32_t>(2);
  SceneBounds& bounds = control.bounds;
  const uint64_t n = control.counts.rows - control.counts.free;
  if (n == 0) return;
  if (mode < kExtent) {
    const float low = number_of(sorted[(n - 1) / 10]), high = number_of(sorted[9 * (n - 1) / 10]);
    bounds.centre[mode] = 0.5f * (low + high);
    bounds.half_extent[mode] = 0.5f * (high - low);
    return;
  }
  bounds.median_extent = std::exp(number_of(sorted[n / 2]));
  const float* h = bounds.half_extent;
  const float most = std::max({h[0], h[1], h[2]}), least = std::min({h[0], h[1], h[2]});
  const float middle = std::max(std::min(h[0], h[1]), std::min(std::max(h[0], h[1]), h[2]));
  const float* c = bounds.centre;
  const float distance = std::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]);
  bounds.valid = std::isfinite(most) && std::isfinite(least) && std::isfinite(distance) &&
                         most > 32 * kEpsilon * std::max(1.0f, distance)
                     ? 1
                     : 0;
  if (bounds.valid == 0) return;
  // All but along a line: the longest extent stands in.
  bounds.median_size = 2 * (middle > 1e-6f * most ? middle : most);
}

}  // namespace millrace::kernels
