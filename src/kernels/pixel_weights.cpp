// pixel_weights: how much each pixel counts in the loss (TRAINING.md 4.2, 4.4, 4.6).
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/pixel_mask.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr uint64_t kRows = 16;  // of a partial sum
constexpr uint32_t kBorder = 5;

}  // namespace

// pixel_weights: w = b (1 + structure_weight S), where b is the mask's weight times that of the
// crop box; without a mask b is 0 in the border that SSIM's windows pass. Bindings  step r, control
// r, cameras r, mask r [H,W] u8 (if params.inputs says so), structure r
//           [H,W] u8 (likewise), weight w [H,W], totals x (LossTotals.base: sum of b; .weight: of
//           w).
// Test      tests/loss/pixel_weights_test.cpp.
void pixel_weights(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  if (!accepted(step, *call.buffer<const Control>(1))) return;
  const auto& params = call.params_as<LossParams>();
  const LossStep& loss = step.loss;
  const uint32_t width = params.width, height = params.height;
  const PixelRays rays(step, call.buffer<const CameraRecord>(2)[step.view]);
  const bool masked = (params.inputs & kLossHasMask) && mask_weighs(loss);
  const uint8_t* mask = masked ? call.buffer<const uint8_t>(3) : nullptr;
  const uint8_t* structure =
      params.inputs & kLossHasStructure ? call.buffer<const uint8_t>(4) : nullptr;
  auto* weight = call.buffer<float>(5);
  const uint32_t edge = !masked && width > 2 * kBorder && height > 2 * kBorder ? kBorder : 0;
  struct Sums {
    double base = 0, weight = 0;
  };
  std::vector<Sums> sums((height + kRows - 1) / kRows);
  parallel_blocks(sums.size(), [&](uint64_t block) {
    Sums s;
    for (uint64_t row = block * kRows; row < std::min<uint64_t>(height, (block + 1) * kRows);
         ++row) {
      const auto y = static_cast<uint32_t>(row);
      for (uint32_t x = 0; x < width; ++x) {
        const uint64_t i = uint64_t{y} * width + x;
        const bool inside = x >= edge && y >= edge && x + edge < width && y + edge < height;
        float base = inside ? rays.weight(x, y) : 0.0f;
        if (mask) base *= mask_weight(loss, mask[i]);
        const float w =
            structure ? base * structure_factor(loss.structure_weight, structure[i]) : base;
        s.base += base;
        s.weight += w;
        weight[i] = w;
      }
    }
    sums[block] = s;
  });
  Sums total;
  for (const Sums& s : sums) {
    total.base += s.base;
    total.weight += s.weight;
  }
  auto* totals = call.buffer<LossTotals>(6);
  totals->base = static_cast<float>(total.base);
  totals->weight = static_cast<float>(total.weight);
}

}  // namespace millrace::kernels
