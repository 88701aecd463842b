// PPISP exposure correction (TRAINING.md 5.3; NVIDIA, "PPISP: physically-plausible compensation and
// control of photometric variations"): exposure, vignetting, colour and response of the camera,
// applied to the rendered image, and its gradients.
#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/ppisp_map.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

uint32_t n_bands(const PpispParams& params) {
  return (params.height + kPpispBand - 1) / kPpispBand;
}

PpispArgs ppisp_args(const KernelCall& call) {
  const auto& params = call.params_as<PpispParams>();
  PpispArgs args = {};
  args.map = ppisp_map_of(params, *call.buffer<const StepBlock>(0), call.buffer<const float>(2));
  args.image = call.buffer<const float>(3);
  args.width = params.width;
  args.height = params.height;
  return args;
}

}  // namespace

// ppisp_forward: the rendered image as the camera of this frame would have delivered it, in [0,1].
// Bindings  step r, control r, values r, image r [3,H,W], corrected w [3,H,W].
void ppisp_forward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  PpispArgs args = ppisp_args(call);
  args.corrected = call.buffer<float>(4);
  const HotKernels& hot = hot_kernels();
  parallel_blocks(n_bands(call.params_as<PpispParams>()), [&](uint64_t band) {
    hot.ppisp_forward_band(args, static_cast<uint32_t>(band));
  });
}

// ppisp_backward: d_corrected becomes d_image in place; sums for the parameters by bands of rows.
// Bindings  step r, control r, values r, image r [3,H,W], d_image x [3,H,W],
//           partials w [bands, kPpispSums].
void ppisp_backward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  PpispArgs args = ppisp_args(call);
  args.d_image = call.buffer<float>(4);
  auto* partials = call.buffer<float>(5);
  const HotKernels& hot = hot_kernels();
  parallel_blocks(n_bands(call.params_as<PpispParams>()), [&](uint64_t band) {
    hot.ppisp_backward_band(args, static_cast<uint32_t>(band), partials + kPpispSums * band);
  });
}

// ppisp_gradient: sums of all bands in a fixed order, then back to the frame's and camera's
// parameters. Bindings  step r, control r, values r, partials r, gradient w [kPpispGradients].
void ppisp_gradient(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  if (!accepted(step, *call.buffer<const Control>(1))) return;
  const auto& params = call.params_as<PpispParams>();
  const auto* partials = call.buffer<const float>(3);
  double sums[kPpispSums] = {};
  for (uint32_t band = 0; band < n_bands(params); ++band) {
    for (uint32_t k = 0; k < kPpispSums; ++k) sums[k] += partials[kPpispSums * band + k];
  }
  ppisp_parameter_gradients(params, step, call.buffer<const float>(2), sums, call.buffer<float>(4));
}

}  // namespace millrace::kernels
