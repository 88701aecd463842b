// ppisp_update: what a step learns about cameras and frames: regularisers, Adam, means at zero.
//   m <- beta1 m + (1 - beta1) g          v <- beta2 v + (1 - beta2) g^2
//   value <- value - rate m / (sqrt(v) inv_sqrt_bias2 + eps), for all frames, seen or not
// With kAppearanceProject the means over frames of exposure and of each colour latent are then
// taken off, in place of PPISP's two penalties on them: what all frames share is the Gaussians'.
// Bindings  step r, control r, gradient r [kPpispGradients], values x, first moment x, second x.
// Writes    nothing behind a closed gate, nor while only the controller learns.
// Numerics  a gradient that is not finite counts as 0.
// Source    TRAINING.md 5.3; Kingma and Ba, Adam, ICLR 2015, algorithm 1.
#include <cmath>

#include "kernels/appearance_params.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-15f;
constexpr float kCentreWeight = 0.02f, kBrighterWeight = 0.01f, kChannelWeight = 0.1f;

struct Learnt {
  const AppearanceStep& step;
  float *value, *first, *second;

  void update(uint64_t i, float gradient) const {
    const float g = std::isfinite(gradient) ? gradient : 0.0f;
    const float m = kBeta1 * first[i] + (1 - kBeta1) * g;
    const float v = kBeta2 * second[i] + (1 - kBeta2) * (g * g);
    first[i] = m;
    second[i] = v;
    value[i] -= step.ppisp_rate * m / (std::sqrt(v) * step.ppisp_inv_sqrt_bias2 + kEpsilon);
  }
};

// One parameter of a camera in its three channels, `stride` apart.
void update_channels(const Learnt& learnt, uint64_t first, uint32_t stride, const float* data,
                     float variance_weight, float centre_weight, float brighter_weight) {
  float value[3];
  for (uint32_t c = 0; c < 3; ++c) value[c] = learnt.value[first + c * stride];
  for (uint32_t c = 0; c < 3; ++c) {
    // From the mean, by differences: equal channels must give 0, since Adam knows no small
    // gradient.
    const float deviation =
        ((value[c] - value[(c + 1) % 3]) + (value[c] - value[(c + 2) % 3])) / 3.0f;
    const float penalty = variance_weight * 2.0f / 3.0f * deviation + 2 * centre_weight * value[c] +
                          (value[c] > 0 ? brighter_weight : 0);
    learnt.update(first + c * stride,
                  learnt.step.ppisp_reg * penalty + (data ? data[c * stride] : 0));
  }
}

}  // namespace

void ppisp_update(const KernelCall& call) {
  const StepBlock& block = *call.buffer<const StepBlock>(0);
  if (!accepted(block, *call.buffer<const Control>(1))) return;
  const AppearanceStep& step = block.appearance;
  if ((step.modes & kAppearanceController) != 0) return;
  const auto& params = call.params_as<PpispParams>();
  const auto* gradient = call.buffer<const float>(2);
  const Learnt learnt = {step, call.buffer<float>(3), call.buffer<float>(4), call.buffer<float>(5)};
  const uint32_t n_frames = params.n_frames;
  for (uint32_t frame = 0; frame < n_frames; ++frame) {
    const bool is_seen = frame == step.frame;
    learnt.update(frame, is_seen ? gradient[0] : 0);
    const uint64_t colour = ppisp_colour_at(params, frame);
    for (uint32_t k = 0; k < kPpispColour; ++k) {
      learnt.update(colour + k, is_seen ? gradient[1 + k] : 0);
    }
  }
  const auto n = static_cast<float>(params.n_cameras);
  for (uint32_t camera = 0; camera < params.n_cameras; ++camera) {
    const float* data = camera == step.camera ? gradient + 1 + kPpispColour : nullptr;
    const uint64_t vignetting = ppisp_vignetting_at(params, camera);
    for (uint32_t k = 0; k < 5; ++k) {
      const bool is_centre = k < 2;
      update_channels(learnt, vignetting + k, 5, data ? data + k : nullptr,
                      kChannelWeight / (5 * n), is_centre ? kCentreWeight / (3 * n) : 0,
                      is_centre ? 0 : kBrighterWeight / (9 * n));
    }
    const uint64_t crf = ppisp_crf_at(params, camera);
    for (uint32_t k = 0; k < 4; ++k) {
      update_channels(learnt, crf + k, 4, data ? data + kPpispVignetting + k : nullptr,
                      kChannelWeight / (4 * n), 0, 0);
    }
  }
  if ((step.modes & kAppearanceProject) == 0) return;
  for (uint32_t lane = 0; lane <= kPpispColour; ++lane) {
    float* first = lane == 0 ? learnt.value : learnt.value + n_frames + lane - 1;
    const uint64_t stride = lane == 0 ? 1 : kPpispColour;
    double sum = 0;
    for (uint32_t frame = 0; frame < n_frames; ++frame) sum += first[stride * frame];
    const auto mean = static_cast<float>(sum / n_frames);
    for (uint32_t frame = 0; frame < n_frames; ++frame) first[stride * frame] -= mean;
  }
}

}  // namespace millrace::kernels
