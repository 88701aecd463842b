// The photometric loss (1 - lambda) L1 + lambda (1 - SSIM) and its image gradient
// (TRAINING.md 4.1, 4.2).
#include <algorithm>

#include "base/parallel.h"
#include "kernels/isa/hot.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

// Below this the weights of a frame are none, and so is its loss.
constexpr float kLeastWeight = 1e-8f;

uint32_t n_bands(uint32_t height) { return (height + kLossBand - 1) / kLossBand; }

PhotometricArgs photometric_args(const KernelCall& call) {
  const auto& params = call.params_as<LossParams>();
  PhotometricArgs args = {};
  args.image = call.buffer<const float>(2);
  args.target = call.buffer<const uint8_t>(3);
  args.width = params.width;
  args.height = params.height;
  args.ssim_weight = call.buffer<const StepBlock>(0)->ssim_weight;
  return args;
}

// Runs task(channel, band) for all bands of all channels.
template <class Task>
void for_each_band(const LossParams& params, const Task& task) {
  const uint32_t bands = n_bands(params.height);
  parallel_blocks(uint64_t{3} * bands, [&](uint64_t i) {
    task(static_cast<uint32_t>(i / bands), static_cast<uint32_t>(i % bands));
  });
}

}  // namespace

// image_to_planar: interleaved 8-bit pixels to planes, once per photograph.
// Bindings  pixels r [H,W,3] u8, planar w [3,H,W] u8.
void image_to_planar(const KernelCall& call) {
  const auto& params = call.params_as<LossParams>();
  const uint64_t n = uint64_t{params.width} * params.height;
  const auto* pixels = call.buffer<const uint8_t>(0);
  auto* planar = call.buffer<uint8_t>(1);
  parallel_for(n, 1u << 16, [&](uint64_t begin, uint64_t end) {
    for (uint64_t c = 0; c < 3; ++c) {
      for (uint64_t i = begin; i < end; ++i) planar[c * n + i] = pixels[3 * i + c];
    }
  });
}

// photometric_forward: sums of |x - y|, of SSIM and of (x - y)^2 per band, and the derivative maps
// of SSIM; all times the pixel's weight.
// Bindings  step r, control r, image r [3,H,W], target r [3,H,W] u8, raw r [3,H,W] (if
//           params.inputs says so), weight r [H,W] (likewise), maps w [3,3,H,W] ([4,3,H,W] with
//           raw), partials w [3 * bands, kLossSums].
void photometric_forward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  const auto& params = call.params_as<LossParams>();
  PhotometricArgs args = photometric_args(call);
  if (params.inputs & kLossHasRaw) args.raw = call.buffer<const float>(4);
  if (params.inputs & kLossHasWeight) args.weight = call.buffer<const float>(5);
  args.maps = call.buffer<float>(6);
  auto* partials = call.buffer<float>(7);
  const uint32_t bands = n_bands(params.height);
  const HotKernels& hot = hot_kernels();
  for_each_band(params, [&](uint32_t channel, uint32_t band) {
    hot.photometric_forward_band(args, channel, band,
                                 partials + kLossSums * (channel * bands + band));
  });
}

// photometric_backward: dLoss/dimage; with kLossRawGradient, dLoss/draw, where image is the raw
// one. Bindings  step r, control r, image r, target r, maps r, weight r, totals r (LossTotals, with
//           weight), d_image w [3,H,W].
void photometric_backward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  PhotometricArgs args = photometric_args(call);
  const uint32_t inputs = call.params_as<LossParams>().inputs;
  args.maps = call.buffer<float>(4);
  if (inputs & kLossHasRaw) args.raw = args.image;  // only says that there is one
  args.raw_gradient = (inputs & kLossRawGradient) != 0;
  if (inputs & kLossHasWeight) {
    args.weight = call.buffer<const float>(5);
    args.weight_sum = std::max(3.0f * call.buffer<const LossTotals>(6)->base, kLeastWeight);
  }
  args.d_image = call.buffer<float>(7);
  const HotKernels& hot = hot_kernels();
  for_each_band(call.params_as<LossParams>(), [&](uint32_t channel, uint32_t band) {
    hot.photometric_backward_band(args, channel, band);
  });
}

// photometric_reduce: the loss, and its parts as means over the pixels by weight, summed in a fixed
// order. The loss is divided by the weights without structure (TRAINING.md 4.4).
// Bindings  step r, partials r, totals r (LossTotals, if params.inputs names any of its parts),
//           control x (metrics.loss, l1, ssim, mse).
void photometric_reduce(const KernelCall& call) {
  const auto& params = call.params_as<LossParams>();
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(3);
  if (!accepted(step, control)) return;
  const auto* partials = call.buffer<const float>(1);
  const LossTotals& totals = *call.buffer<const LossTotals>(2);
  double l1 = 0, ssim = 0, mse = 0;
  for (uint32_t i = 0; i < 3 * n_bands(params.height); ++i) {
    l1 += partials[kLossSums * i];
    ssim += partials[kLossSums * i + 1];
    mse += partials[kLossSums * i + 2];
  }
  const uint32_t edge = params.width > 10 && params.height > 10 ? 5 : 0;
  double count = 3.0 * (params.width - 2 * edge) * (params.height - 2 * edge);
  double emphasis = 1;
  if (params.inputs & kLossHasWeight) {
    count = std::max(3.0 * totals.weight, double{kLeastWeight});
    emphasis = 3.0 * totals.weight / std::max(3.0 * totals.base, double{kLeastWeight});
  }
  control.metrics.l1 = static_cast<float>(l1 / count);
  control.metrics.ssim = static_cast<float>(ssim / count);
  control.metrics.mse = static_cast<float>(mse / count);
  double loss = (1.0 - step.ssim_weight) * (l1 / count) + step.ssim_weight * (1.0 - ssim / count);
  loss *= emphasis;
  if (params.inputs & kLossHasEdges) loss += totals.edge;
  if (params.inputs & kLossHasPenalty) loss += totals.penalty;
  control.metrics.loss = static_cast<float>(loss);
}

}  // namespace millrace::kernels
