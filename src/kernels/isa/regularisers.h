// Gradients of the regularisers that depend on a row alone (TRAINING.md 4.7), on kWidth rows.
#pragma once

#include "kernels/isa/projection.h"

namespace millrace::kernels::MILLRACE_ISA {

constexpr float kLn2 = 0.693147180559945f;
/// Base colours beyond it are outside [0, 1]: 0.5 / 0.28209479.
constexpr float kLargestSh0 = 1.7724538509055159f;
constexpr float kLeastRankExcess = 1e-5f;

/// ln(1 + t) for t in [0, 2]: exact to the last bits for small t too.
static inline vf log_one_plus(vf t) {
  const vf z = t / (2.0f + t), z2 = z * z;
  vf series = fma(broadcast(2.0f / 9.0f), z2, broadcast(2.0f / 7.0f));
  series = fma(series, z2, broadcast(2.0f / 5.0f));
  series = fma(series, z2, broadcast(2.0f / 3.0f));
  series = fma(series, z2, broadcast(2.0f));
  return t < 0.4f ? z * series : kLn2 * log2(1.0f + t);
}

/// exp(x) - 1 for x in [0, 1.1].
static inline vf exp_minus_one(vf x) {
  const vf series = x * (1.0f + x * (0.5f + x * (1.0f / 6.0f + x * (1.0f / 24.0f))));
  return x < 0.05f ? series : exp(x) - 1.0f;
}

/// Adds what the effective rank of a Gaussian's three scales pulls at their logarithms: the
/// gradient of weight mean max(0, -ln(erank - 1 + 1e-5)) with erank = exp(H), H the entropy of the
/// squared scales' shares p. dH / dlog s_k = 2 p_k (-ln p_k - H). Needles have rank 1, discs 2.
static inline void add_rank_gradient(float weight_per_row, const vf* raw, vf* gradient) {
  const vf largest = max(max(raw[0], raw[1]), raw[2]);
  vf gap[3], share[3];  // -ln of the squared scale over the largest one; p before it is divided
  vf total = vf{}, weighted = vf{};
  for (int k = 0; k < 3; ++k) {
    gap[k] = 2.0f * (largest - raw[k]);
    share[k] = exp(-gap[k]);
    total += share[k];
    weighted += share[k] * gap[k];
  }
  // total - 1 without cancelling: the other two, once the largest is left out.
  const vf least = min(min(share[0], share[1]), share[2]);
  const vf middle = max(min(share[0], share[1]), min(max(share[0], share[1]), share[2]));
  const vf log_total = log_one_plus(least + middle);
  const vf inv_total = 1.0f / total;
  const vf entropy = log_total + weighted * inv_total;
  const vf excess = exp_minus_one(entropy);  // erank - 1
  const vf slope = excess + kLeastRankExcess < 1.0f
                       ? -weight_per_row * (excess + 1.0f) / (excess + kLeastRankExcess)
                       : vf{};
  for (int k = 0; k < 3; ++k) {
    const vf d_entropy = 2.0f * share[k] * inv_total * (gap[k] + log_total - entropy);
    gradient[k] += raw[k] < kMaxRawScale ? slope * d_entropy : vf{};
  }
}

/// Adds the gradients of opacity_reg mean(o), scale_reg mean(s) and erank_reg, over `n` live rows,
/// and of dc_reg, which is a sum. `group` points at the block's lanes, offset to the first row.
static inline void add_regularisers(const StepBlock& step, float n, const float* group,
                                    vf* gradient) {
  const vf o = sigmoid(load(group + kLaneOpacity * kRowBlock));
  gradient[kLaneOpacity] += step.opacity_reg / n * o * (1.0f - o);
  vf raw[3];
  for (uint32_t k = 0; k < 3; ++k) {
    raw[k] = load(group + (kLaneScale + k) * kRowBlock);
    const vf s = exp(min(raw[k], broadcast(kMaxRawScale)));
    gradient[kLaneScale + k] += raw[k] < kMaxRawScale ? step.scale_reg / (3.0f * n) * s : vf{};
  }
  if (step.mrnf.erank_reg > 0.0f) {
    add_rank_gradient(step.mrnf.erank_reg / n, raw, gradient + kLaneScale);
  }
  if (step.mrnf.dc_reg > 0.0f) {
    for (uint32_t c = 0; c < 3; ++c) {
      const vf value = load(group + (kLaneSh0 + c) * kRowBlock);
      const vf beyond = max(value - kLargestSh0, vf{}) + min(value + kLargestSh0, vf{});
      gradient[kLaneSh0 + c] += 2.0f / 3.0f * step.mrnf.dc_reg * beyond;
    }
  }
}

}  // namespace millrace::kernels::MILLRACE_ISA
