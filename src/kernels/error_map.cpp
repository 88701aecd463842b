// error_map: how badly each pixel is drawn, for densification (TRAINING.md 3.2).
#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/pixel_mask.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr uint64_t kBlock = 1u << 14;  // pixels of a partial sum

}  // namespace

// error_map: E = max(0, 1 - mean over channels of SSIM's contrast x structure), times the mask,
// over its mean, times 1 + densify_structure_weight S.
// Bindings  step r, control r, maps r (of photometric_forward), mask r [H,W] u8 (if params.inputs
//           says so), structure r [H,W] u8 (likewise), error w [H,W].
// Numerics  contrast x structure = -2 (dS/dsigma11) / (dS/dsigma12), in which the pixel's weight
// and
//           the luminance cancel; 0 where the loss does not count the pixel.
void error_map(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  if (!accepted(step, *call.buffer<const Control>(1))) return;
  const auto& params = call.params_as<LossParams>();
  const LossStep& loss = step.loss;
  const uint64_t n = uint64_t{params.width} * params.height;
  const auto* maps = call.buffer<const float>(2);
  const bool masked = (params.inputs & kLossHasMask) && mask_weighs(loss);
  const uint8_t* mask = masked ? call.buffer<const uint8_t>(3) : nullptr;
  const uint8_t* structure =
      params.inputs & kLossHasStructure ? call.buffer<const uint8_t>(4) : nullptr;
  auto* error = call.buffer<float>(5);
  std::vector<double> sums((n + kBlock - 1) / kBlock);
  parallel_blocks(sums.size(), [&](uint64_t block) {
    double sum = 0;
    for (uint64_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      float agreement = 0;
      bool counts = false;
      for (uint64_t c = 0; c < 3; ++c) {
        const float d_xx = maps[(3 + c) * n + i], d_xy = maps[(6 + c) * n + i];
        if (d_xy == 0.0f) continue;
        agreement += -2.0f * d_xx / d_xy;
        counts = true;
      }
      float value = counts ? std::max(0.0f, 1.0f - agreement * (1.0f / 3.0f)) : 0.0f;
      if (mask) value *= mask_weight(loss, mask[i]);
      sum += value;
      if (structure) value *= structure_factor(loss.densify_structure_weight, structure[i]);
      error[i] = value;
    }
    sums[block] = sum;
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  const float scale = 1.0f / (static_cast<float>(total / static_cast<double>(n)) + 1e-6f);
  parallel_for(n, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) error[i] *= scale;
  });
}

}  // namespace millrace::kernels
