// opacity_penalty: what a mask says of a frame's opacity (TRAINING.md 4.6).
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/pixel_mask.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr uint64_t kRows = 16;  // of a partial sum

}  // namespace

// opacity_penalty: with alpha = 1 - transmittance, m the mask and r the crop box's weight, the mean
// over all pixels of  segment: mask_penalty r alpha (1 - m)^2;  segment-and-ignore: mask_penalty r
// alpha where the mask is from 128 to 250;  alpha-consistent: mask_penalty r |alpha - m|. 0 in
// other modes and for a frame without a mask. Bindings  step r, control r, cameras r, mask r [H,W]
// u8 (if params.inputs says so), transmittance
//           r [tiles,256], d_alpha w [H,W], totals x (LossTotals.penalty).
// Test      tests/loss/pixel_weights_test.cpp.
void opacity_penalty(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  if (!accepted(step, *call.buffer<const Control>(1))) return;
  const auto& params = call.params_as<LossParams>();
  const LossStep& loss = step.loss;
  const uint32_t width = params.width, height = params.height;
  const PixelRays rays(step, call.buffer<const CameraRecord>(2)[step.view]);
  const uint8_t* mask = params.inputs & kLossHasMask ? call.buffer<const uint8_t>(3) : nullptr;
  const auto* transmittance = call.buffer<const float>(4);
  auto* d_alpha = call.buffer<float>(5);
  const uint64_t tiles_x = (width + kTileSize - 1) / kTileSize;
  const float scale =
      mask ? loss.mask_penalty / (static_cast<float>(width) * static_cast<float>(height)) : 0.0f;
  std::vector<double> sums((height + kRows - 1) / kRows);
  parallel_blocks(sums.size(), [&](uint64_t block) {
    double sum = 0;
    for (uint64_t row = block * kRows; row < std::min<uint64_t>(height, (block + 1) * kRows);
         ++row) {
      const auto y = static_cast<uint32_t>(row);
      for (uint32_t x = 0; x < width; ++x) {
        const uint64_t i = uint64_t{y} * width + x;
        const uint64_t tile = y / kTileSize * tiles_x + x / kTileSize;
        const uint64_t in_tile = y % kTileSize * kTileSize + x % kTileSize;
        const float alpha = 1.0f - transmittance[tile * kTileSize * kTileSize + in_tile];
        OpacityPenalty p;
        if (mask) p = penalty_of(loss, mask[i], alpha);
        const float weight = scale * rays.weight(x, y);
        sum += weight * p.value;
        d_alpha[i] = weight * p.slope;
      }
    }
    sums[block] = sum;
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  call.buffer<LossTotals>(6)->penalty = static_cast<float>(total);
}

}  // namespace millrace::kernels
