// The photometric loss (1 - lambda) L1 + lambda (1 - SSIM) and its image gradient
// (TRAINING.md 4.1).
#include "base/parallel.h"
#include "kernels/isa/hot.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

uint32_t n_bands(uint32_t height) { return (height + kLossBand - 1) / kLossBand; }

PhotometricArgs photometric_args(const KernelCall& call) {
  const auto& params = call.params_as<LossParams>();
  PhotometricArgs args = {};
  args.image = call.buffer<const float>(2);
  args.target = call.buffer<const uint8_t>(3);
  args.width = params.width;
  args.height = params.height;
  args.ssim_weight = call.buffer<const StepBlock>(0)->ssim_weight;
  args.maps = call.buffer<float>(4);
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

// photometric_forward: sums of |x - y| and of SSIM per band, and the three derivative maps of SSIM.
// Bindings  step r, control r, image r [3,H,W], target r [3,H,W] u8, maps w [3,3,H,W],
//           partials w [3 * bands, kLossSums].
void photometric_forward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  const auto& params = call.params_as<LossParams>();
  const PhotometricArgs args = photometric_args(call);
  auto* partials = call.buffer<float>(5);
  const uint32_t bands = n_bands(params.height);
  const HotKernels& hot = hot_kernels();
  for_each_band(params, [&](uint32_t channel, uint32_t band) {
    hot.photometric_forward_band(args, channel, band,
                                 partials + kLossSums * (channel * bands + band));
  });
}

// photometric_backward: dLoss/dimage.
// Bindings  step r, control r, image r, target r, maps r, d_image w [3,H,W].
void photometric_backward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  PhotometricArgs args = photometric_args(call);
  args.d_image = call.buffer<float>(5);
  const HotKernels& hot = hot_kernels();
  for_each_band(call.params_as<LossParams>(), [&](uint32_t channel, uint32_t band) {
    hot.photometric_backward_band(args, channel, band);
  });
}

// photometric_reduce: the loss and its parts as means over the valid pixels, summed in a fixed
// order. Bindings  step r, partials r, control x (metrics.loss, l1, ssim, mse).
void photometric_reduce(const KernelCall& call) {
  const auto& params = call.params_as<LossParams>();
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(2);
  if (!accepted(step, control)) return;
  const auto* partials = call.buffer<const float>(1);
  double l1 = 0, ssim = 0, mse = 0;
  for (uint32_t i = 0; i < 3 * n_bands(params.height); ++i) {
    l1 += partials[kLossSums * i];
    ssim += partials[kLossSums * i + 1];
    mse += partials[kLossSums * i + 2];
  }
  const uint32_t edge = params.width > 10 && params.height > 10 ? 5 : 0;
  const double count = 3.0 * (params.width - 2 * edge) * (params.height - 2 * edge);
  control.metrics.l1 = static_cast<float>(l1 / count);
  control.metrics.ssim = static_cast<float>(ssim / count);
  control.metrics.mse = static_cast<float>(mse / count);
  control.metrics.loss = static_cast<float>((1.0 - step.ssim_weight) * (l1 / count) +
                                            step.ssim_weight * (1.0 - ssim / count));
}

}  // namespace millrace::kernels
