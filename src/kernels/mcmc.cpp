// MCMC strategy (TRAINING.md 3.7): noise, relocation of dead rows, growth. All counts stay on the
// device. Source: Kheradmand et al., 3D Gaussian Splatting as Markov Chain Monte Carlo,
// arXiv:2404.09591.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "base/philox.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr uint64_t kBlock = 4096;            // rows per task
constexpr int kMaxCopies = 51;               // n_max of the paper
constexpr float kWeightScale = 16777216.0f;  // opacity to integer weights

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
float logit(float o) { return std::log(o / (1.0f - o)); }

float quaternion_norm2(const float* geometry, uint64_t row) {
  float norm2 = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const float q = geometry[row_index(row, kLaneRotation + k, kGeometryLanes)];
    norm2 += q * q;
  }
  return norm2;
}

// Three standard normals for one row.
std::array<float, 3> normals(const StepBlock& step, uint64_t row) {
  const auto words =
      philox(step.seed, step.step, RandomPurpose::McmcNoise, static_cast<uint32_t>(row));
  const auto a = normal_pair(words[0], words[1]), b = normal_pair(words[2], words[3]);
  return {a[0], a[1], b[0]};
}

}  // namespace

// mcmc_noise: means += Sigma eps w noise_scale with w = 1 / (1 + exp(100 (o - min_opacity))).
// Bindings  step r, control r, geometry x.
// Writes    means, if the transaction was accepted and noise_scale > 0.
void mcmc_noise(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(step, control) || step.noise_scale <= 0) return;
  auto* geometry = call.buffer<float>(2);
  parallel_for(control.counts.rows, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      const auto lane = [&](uint32_t l) -> float& {
        return geometry[row_index(row, l, kGeometryLanes)];
      };
      const float opacity = sigmoid(lane(kLaneOpacity));
      // Above this opacity w is below 1e-12 and moves no float32 mean.
      if (opacity > step.min_opacity + 0.28f) continue;
      const float w = 1.0f / (1.0f + std::exp(100.0f * (opacity - step.min_opacity)));
      const float norm2 = quaternion_norm2(geometry, row);
      if (norm2 < kMinQuaternionNorm2) continue;
      const float s = 2.0f / norm2;
      const float qw = lane(kLaneRotation), qx = lane(kLaneRotation + 1),
                  qy = lane(kLaneRotation + 2), qz = lane(kLaneRotation + 3);
      const float r[3][3] = {
          {1 - s * (qy * qy + qz * qz), s * (qx * qy - qw * qz), s * (qx * qz + qw * qy)},
          {s * (qx * qy + qw * qz), 1 - s * (qx * qx + qz * qz), s * (qy * qz - qw * qx)},
          {s * (qx * qz - qw * qy), s * (qy * qz + qw * qx), 1 - s * (qx * qx + qy * qy)}};
      const auto eps = normals(step, row);
      float local[3];  // diag(s^2) R^T eps
      for (uint32_t k = 0; k < 3; ++k) {
        const float scale = std::exp(std::min(lane(kLaneScale + k), kMaxRawScale));
        local[k] = scale * scale * (r[0][k] * eps[0] + r[1][k] * eps[1] + r[2][k] * eps[2]);
      }
      for (uint32_t j = 0; j < 3; ++j) {
        const float step_world = r[j][0] * local[0] + r[j][1] * local[1] + r[j][2] * local[2];
        const float moved = lane(kLaneMean + j) + step_world * w * step.noise_scale;
        if (std::isfinite(moved)) lane(kLaneMean + j) = moved;
      }
    }
  });
}

// mcmc_weights: integer sampling weights as a prefix sum, and how many rows want a source.
// Bindings  step r, control x (dead or added), geometry r, prefix w [cap rows] u64 inclusive,
// dead_list w
//           [cap rows] u32 ascending.
// mode 0: dead rows (opacity <= min_opacity, or no rotation) want one; mode 1: floor(N / 20) new
// rows up to the cap. Weights are opacity x 2^24, 0 for dead rows; integers, so that the order of
// summing cannot matter.
void mcmc_weights(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(1);
  if (!accepted(step, control)) return;
  const auto* geometry = call.buffer<const float>(2);
  auto* prefix = call.buffer<uint64_t>(3);
  auto* dead_list = call.buffer<uint32_t>(4);
  const uint64_t rows = control.counts.rows, n_blocks = (rows + kBlock - 1) / kBlock;
  const auto weight_of = [&](uint64_t row) -> uint64_t {
    const float opacity = sigmoid(geometry[row_index(row, kLaneOpacity, kGeometryLanes)]);
    const bool alive =
        opacity > step.min_opacity && quaternion_norm2(geometry, row) >= kMinQuaternionNorm2;
    return alive ? static_cast<uint64_t>(opacity * kWeightScale) : 0;
  };
  std::vector<uint64_t> weights(n_blocks), dead(n_blocks);
  parallel_blocks(n_blocks, [&](uint64_t block) {
    const uint64_t end = std::min(rows, (block + 1) * kBlock);
    for (uint64_t row = block * kBlock; row < end; ++row) {
      const uint64_t weight = weight_of(row);
      weights[block] += weight;
      dead[block] += weight == 0;
    }
  });
  uint64_t total = 0, n_dead = 0;
  for (uint64_t block = 0; block < n_blocks; ++block) {
    const uint64_t weight = weights[block], count = dead[block];
    weights[block] = total;
    dead[block] = n_dead;
    total += weight;
    n_dead += count;
  }
  parallel_blocks(n_blocks, [&](uint64_t block) {
    uint64_t sum = weights[block], place = dead[block];
    const uint64_t end = std::min(rows, (block + 1) * kBlock);
    for (uint64_t row = block * kBlock; row < end; ++row) {
      const uint64_t weight = weight_of(row);
      sum += weight;
      prefix[row] = sum;
      if (weight == 0) dead_list[place++] = static_cast<uint32_t>(row);
    }
  });
  if (call.params_as<RowsParams>().mode == 0) {
    control.counts.dead = total == 0 ? 0 : static_cast<uint32_t>(n_dead);
  } else {
    const uint64_t target =
        std::max<uint64_t>(rows, std::min<uint64_t>(rows + rows / 20, step.max_rows));
    control.counts.added = total == 0 ? 0 : static_cast<uint32_t>(target - rows);
  }
}

// mcmc_draw: a source for each row that wants one, with replacement, in proportion to the weights.
// Bindings  step r, control r, prefix r, source w [cap rows] u32, times w [cap rows] u32: how often
// each row
//           was drawn.
void mcmc_draw(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(step, control)) return;
  const bool growing = call.params_as<RowsParams>().mode == 1;
  const auto* prefix = call.buffer<const uint64_t>(2);
  auto* source = call.buffer<uint32_t>(3);
  auto* times = call.buffer<uint32_t>(4);
  const uint64_t rows = control.counts.rows;
  const uint64_t n = growing ? control.counts.added : control.counts.dead;
  std::fill_n(times, rows, 0u);
  if (n == 0) return;
  const uint64_t total = prefix[rows - 1];
  const RandomPurpose purpose = growing ? RandomPurpose::McmcAdd : RandomPurpose::McmcRelocate;
  parallel_for(n, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const auto words = philox(step.seed, step.step, purpose, static_cast<uint32_t>(i));
      const uint64_t word = uint64_t{words[0]} << 32 | words[1];
      const auto place =
          static_cast<uint64_t>((static_cast<unsigned __int128>(word) * total) >> 64);
      const uint64_t row =
          static_cast<uint64_t>(std::upper_bound(prefix, prefix + rows, place) - prefix);
      source[i] = static_cast<uint32_t>(row);
      std::atomic_ref<uint32_t>(times[row]).fetch_add(1, std::memory_order_relaxed);
    }
  });
}

// mcmc_split: sources share their opacity and shrink so that the sum of copies looks as before (eq.
// 9 of the paper); their moments start anew. Bindings  step r, control r, times r, geometry x, its
// moments x x, sh_rest moments x x.
void mcmc_split(const KernelCall& call) {
  const auto& params = call.params_as<RowsParams>();
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(step, control)) return;
  const auto* times = call.buffer<const uint32_t>(2);
  auto* geometry = call.buffer<float>(3);
  float* geometry_moments[2] = {call.buffer<float>(4), call.buffer<float>(5)};
  float* rest_moments[2] = {call.buffer<float>(6), call.buffer<float>(7)};
  parallel_for(control.counts.rows, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      if (times[row] == 0) continue;
      const int n = static_cast<int>(std::min<uint64_t>(uint64_t{times[row]} + 1, kMaxCopies));
      float& raw = geometry[row_index(row, kLaneOpacity, kGeometryLanes)];
      const double opacity = sigmoid(raw);
      const double shared = 1.0 - std::pow(1.0 - opacity, 1.0 / n);
      double denominator = 0;
      for (int i = 1; i <= n; ++i) {
        double binomial = 1, power = shared;  // C(i-1, k) (-1)^k and shared^(k+1)
        for (int k = 0; k < i; ++k) {
          denominator += binomial * power / std::sqrt(k + 1.0);
          binomial *= -static_cast<double>(i - 1 - k) / (k + 1);
          power *= shared;
        }
      }
      const auto ratio = static_cast<float>(std::log(opacity / denominator));
      raw = logit(std::clamp(static_cast<float>(shared), step.min_opacity, 1.0f - 1e-7f));
      for (uint32_t k = 0; k < 3; ++k) {
        float& scale = geometry[row_index(row, kLaneScale + k, kGeometryLanes)];
        if (std::isfinite(ratio)) scale += ratio;
      }
      for (float* moments : geometry_moments) {
        for (uint32_t l = 0; l < kGeometryLanes; ++l)
          moments[row_index(row, l, kGeometryLanes)] = 0;
      }
      for (float* moments : rest_moments) {
        for (uint32_t l = 0; l < params.sh_rest_lanes; ++l) {
          moments[row_index(row, l, params.sh_rest_lanes)] = 0;
        }
      }
    }
  });
}

// mcmc_fill: copies each source into the row that wants it, with zero moments.
// Bindings  step r, control r, dead_list r, source r, geometry x and its moments x x, sh_rest x and
// its moments
//           x x. mode 0: into dead_list[i]; mode 1: into row N + i.
void mcmc_fill(const KernelCall& call) {
  const auto& params = call.params_as<RowsParams>();
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(step, control)) return;
  const bool growing = params.mode == 1;
  const auto* dead_list = call.buffer<const uint32_t>(2);
  const auto* source = call.buffer<const uint32_t>(3);
  const uint64_t n = growing ? control.counts.added : control.counts.dead;
  const auto copy_group = [&](size_t binding, uint32_t lanes, uint64_t to, uint64_t from) {
    auto* value = call.buffer<float>(binding);
    auto* first = call.buffer<float>(binding + 1);
    auto* second = call.buffer<float>(binding + 2);
    for (uint32_t l = 0; l < lanes; ++l) {
      value[row_index(to, l, lanes)] = value[row_index(from, l, lanes)];
      first[row_index(to, l, lanes)] = 0;
      second[row_index(to, l, lanes)] = 0;
    }
  };
  parallel_for(n, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t to = growing ? control.counts.rows + i : dead_list[i];
      copy_group(4, kGeometryLanes, to, source[i]);
      copy_group(7, params.sh_rest_lanes, to, source[i]);
    }
  });
}

}  // namespace millrace::kernels
