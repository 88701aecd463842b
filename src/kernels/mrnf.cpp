// The MRNF strategy (TRAINING.md 3.3, 3.4): noise, removal of rows, draws without replacement,
// splits along the longest axis, decay. All counts stay on the device. Numbers are deterministic:
// draws are the smallest of exponential keys, and equal keys go by row.
#include "kernels/mrnf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "base/philox.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr uint64_t kBlock = 4096;  // rows per task
constexpr float kMinLogScale = -23.0258509f;
constexpr float kSplitScaleLong = -0.69314718f;   // ln 0.5
constexpr float kSplitScaleShort = -0.16251893f;  // ln 0.85
constexpr float kSplitOpacity = 0.6f;
constexpr float kEdgeGuidance = 0.25f;

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
float logit(float o) { return std::log(o / (1.0f - o)); }

float statistic(const float* statistics, uint64_t row, uint32_t lane) {
  return statistics[row_index(row, lane, kStatisticLanes)];
}
float geometry_lane(const float* geometry, uint64_t row, uint32_t lane) {
  return geometry[row_index(row, lane, kGeometryLanes)];
}
float quaternion_norm2(const float* geometry, uint64_t row) {
  float norm2 = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const float q = geometry_lane(geometry, row, kLaneRotation + k);
    norm2 += q * q;
  }
  return norm2;
}

// A place without a Gaussian.
bool is_free(const float* geometry, uint64_t row) {
  for (uint32_t k = 0; k < 4; ++k) {
    if (geometry_lane(geometry, row, kLaneRotation + k) != 0) return false;
  }
  return true;
}

// A Gaussian that nothing will bring back: too faint, too small, without rotation, or no number.
bool is_dead(const StepBlock& step, const float* geometry, uint64_t row) {
  float largest = -INFINITY;
  for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) {
    const float value = geometry_lane(geometry, row, lane);
    if (!std::isfinite(value)) return true;
    if (lane >= kLaneScale && lane < kLaneRotation) largest = std::max(largest, value);
  }
  return quaternion_norm2(geometry, row) < kMinQuaternionNorm2 || largest < kMinLogScale ||
         sigmoid(geometry_lane(geometry, row, kLaneOpacity)) < step.min_opacity;
}

// What a refinement counts of a block of rows.
struct BlockCounts {
  uint32_t live = 0, free = 0, pruned = 0, weighted = 0, edges = 0, candidates = 0;
};

void clear_lanes(float* group, uint64_t row, uint32_t lanes) {
  for (uint32_t l = 0; l < lanes; ++l) group[row_index(row, l, lanes)] = 0;
}

// 1 + 0.25 of the row's edge score over the median of all scores above zero.
float guidance(const MrnfCounts& counts, const uint32_t* sorted_edges, float score) {
  if (counts.edges == 0 || !(score > 0)) return 1;
  return 1 + kEdgeGuidance * score / std::bit_cast<float>(sorted_edges[counts.edges / 2]);
}

// The bits of a number of the exponential distribution of rate `weight`; of k draws without
// replacement in proportion to the weights, the k smallest are the outcome. Source: Efraimidis and
// Spirakis, Weighted random sampling with a reservoir, 2006.
uint32_t draw_key(const StepBlock& step, RandomPurpose purpose, uint64_t row, float weight) {
  if (!(weight > 0)) return kNoDraw;
  const uint32_t word = philox(step.seed, step.step, purpose, static_cast<uint32_t>(row))[0];
  const double v = (word + 0.5) / 4294967296.0;
  const auto key = static_cast<float>(-std::log1p(-v) / weight);
  return std::min(std::bit_cast<uint32_t>(key), kLastDraw);
}

uint64_t budget_of(const StepBlock& step, const MrnfCounts& counts) {
  return step.max_rows > counts.live ? step.max_rows - counts.live : 0;
}

}  // namespace

// mrnf_noise: means += clamp(eps w, +-median size), w = max(1 - o, 0)^150 noise_scale median size.
// Bindings  step r, control r, statistics r, geometry x.
// Writes    means of rows that were seen in this window, if the transaction was accepted, the step
//           block asks for noise and the bounds are valid.
void mrnf_noise(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(step, control) || !(step.mrnf.modes & kMrnfNoise)) return;
  if (!control.bounds.valid) return;
  const auto* statistics = call.buffer<const float>(2);
  auto* geometry = call.buffer<float>(3);
  const float size = control.bounds.median_size;
  parallel_for(control.counts.rows, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      if (!(statistic(statistics, row, kStatWeight) > 0) || is_free(geometry, row)) continue;
      const float opacity = sigmoid(geometry_lane(geometry, row, kLaneOpacity));
      const float w = std::pow(std::max(1 - opacity, 0.0f), 150.0f) * step.noise_scale;
      if (!(w >= kMrnfLeastNoise)) continue;
      const auto words =
          philox(step.seed, step.step, RandomPurpose::MrnfNoise, static_cast<uint32_t>(row));
      const auto a = normal_pair(words[0], words[1]), b = normal_pair(words[2], words[3]);
      const float eps[3] = {a[0], a[1], b[0]};
      for (uint32_t k = 0; k < 3; ++k) {
        float& mean = geometry[row_index(row, kLaneMean + k, kGeometryLanes)];
        const float moved = mean + size * std::clamp(eps[k] * w, -1.0f, 1.0f);
        if (std::isfinite(moved)) mean = moved;
      }
    }
  });
}

// mrnf_classify: removes dead rows (their place becomes free: zero quaternion, zero moments), lists
// free places, and counts.
// Bindings  step r, control x (dead, candidates), statistics r, geometry x and its moments x x,
//           sh_rest x and its moments x x, counts w (MrnfCounts), free_list w [cap rows] u32
//           ascending, edge_keys w [cap rows] u32: bits of the edge score, or kNoDraw.
// Writes    nothing unless the transaction was accepted.
void mrnf_classify(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(1);
  if (!accepted(step, control)) return;
  const auto* statistics = call.buffer<const float>(2);
  auto* geometry = call.buffer<float>(3);
  const uint32_t rest_lanes = call.params_as<RowsParams>().sh_rest_lanes;
  auto* free_list = call.buffer<uint32_t>(10);
  auto* edge_keys = call.buffer<uint32_t>(11);
  const uint64_t rows = control.counts.rows, n_blocks = (rows + kBlock - 1) / kBlock;
  std::vector<BlockCounts> blocks(n_blocks);
  parallel_blocks(n_blocks, [&](uint64_t block) {
    BlockCounts& n = blocks[block];
    const uint64_t end = std::min(rows, (block + 1) * kBlock);
    for (uint64_t row = block * kBlock; row < end; ++row) {
      edge_keys[row] = kNoDraw;
      const bool was_free = is_free(geometry, row);
      if (was_free || is_dead(step, geometry, row)) {
        ++n.free;
        if (was_free) continue;
        ++n.pruned;
        for (size_t group = 3; group < 6; ++group) {
          clear_lanes(call.buffer<float>(group), row, kGeometryLanes);
          clear_lanes(call.buffer<float>(group + 3), row, rest_lanes);
        }
        continue;
      }
      ++n.live;
      if (!(statistic(statistics, row, kStatWeight) > 0)) continue;
      ++n.weighted;
      if (statistic(statistics, row, kStatError) > step.mrnf.growth_threshold) ++n.candidates;
      const float score = statistic(statistics, row, kStatEdge);
      if (!(score > 0) || !std::isfinite(score)) continue;
      ++n.edges;
      edge_keys[row] = std::bit_cast<uint32_t>(score);
    }
  });
  MrnfCounts all = {};
  for (BlockCounts& n : blocks) {
    const uint32_t before = all.free;
    all.live += n.live;
    all.free += n.free;
    all.pruned += n.pruned;
    all.weighted += n.weighted;
    all.edges += n.edges;
    all.candidates += n.candidates;
    n.free = before;
  }
  parallel_blocks(n_blocks, [&](uint64_t block) {
    uint32_t place = blocks[block].free;
    const uint64_t end = std::min(rows, (block + 1) * kBlock);
    for (uint64_t row = block * kBlock; row < end; ++row) {
      if (is_free(geometry, row)) free_list[place++] = static_cast<uint32_t>(row);
    }
  });
  all.replaced =
      static_cast<uint32_t>(std::min<uint64_t>({all.pruned, budget_of(step, all), all.weighted}));
  *call.buffer<MrnfCounts>(9) = all;
  control.counts.dead = all.pruned;
  control.counts.candidates = all.candidates;
}

// mrnf_replace_keys: a key for each row, whose `replaced` smallest are the parents in place of
// removed rows. Weight: opacity x guidance of rows that were seen.
// Bindings  step r, control r, statistics r, geometry r, counts r, sorted_edges r [cap rows] u32,
//           keys w [cap rows] u32.
void mrnf_replace_keys(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(step, control)) return;
  const auto* statistics = call.buffer<const float>(2);
  const auto* geometry = call.buffer<const float>(3);
  const MrnfCounts& counts = *call.buffer<const MrnfCounts>(4);
  const auto* sorted_edges = call.buffer<const uint32_t>(5);
  auto* keys = call.buffer<uint32_t>(6);
  parallel_for(control.counts.rows, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      float weight = 0;
      if (statistic(statistics, row, kStatWeight) > 0 && !is_free(geometry, row)) {
        weight = sigmoid(geometry_lane(geometry, row, kLaneOpacity)) *
                 guidance(counts, sorted_edges, statistic(statistics, row, kStatEdge));
      }
      keys[row] = draw_key(step, RandomPurpose::MrnfReplace, row, weight);
    }
  });
}

// mrnf_grow_keys: the same for growth, and how many rows are born. Weight: largest error x guidance
// of the candidates that were not drawn yet.
// Bindings  step r, control x (added, free, born), statistics r, geometry r, counts x (grown),
//           sorted_edges r, keys_before r [cap rows] u32, sorted_before r [cap rows] u32 and
//           order_before r [cap rows] u32 (the first draw's), keys w [cap rows] u32.
void mrnf_grow_keys(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(1);
  if (!accepted(step, control)) return;
  const auto* statistics = call.buffer<const float>(2);
  const auto* geometry = call.buffer<const float>(3);
  MrnfCounts& counts = *call.buffer<MrnfCounts>(4);
  const auto* sorted_edges = call.buffer<const uint32_t>(5);
  const auto* keys_before = call.buffer<const uint32_t>(6);
  const auto* sorted_before = call.buffer<const uint32_t>(7);
  const auto* order_before = call.buffer<const uint32_t>(8);
  auto* keys = call.buffer<uint32_t>(9);
  const uint64_t rows = control.counts.rows, n_blocks = (rows + kBlock - 1) / kBlock;
  const uint32_t last = counts.replaced;
  const auto is_drawn = [&](uint64_t row) {
    if (last == 0) return false;
    const uint32_t key = keys_before[row], last_key = sorted_before[last - 1];
    return key < last_key || (key == last_key && row <= order_before[last - 1]);
  };
  std::vector<uint32_t> n_weighted(n_blocks);
  parallel_blocks(n_blocks, [&](uint64_t block) {
    const uint64_t end = std::min(rows, (block + 1) * kBlock);
    for (uint64_t row = block * kBlock; row < end; ++row) {
      const float error = statistic(statistics, row, kStatError);
      const bool candidate = statistic(statistics, row, kStatWeight) > 0 &&
                             error > step.mrnf.growth_threshold && !is_free(geometry, row);
      const float weight =
          candidate && !is_drawn(row)
              ? error * guidance(counts, sorted_edges, statistic(statistics, row, kStatEdge))
              : 0.0f;
      keys[row] = draw_key(step, RandomPurpose::MrnfGrow, row, weight);
      n_weighted[block] += keys[row] != kNoDraw;
    }
  });
  uint64_t grown = 0;
  if (step.mrnf.modes & kMrnfGrows) {
    uint64_t most = 0;
    for (const uint32_t n : n_weighted) most += n;
    const uint64_t desired = grown_by(counts.candidates, growth_parts(step.mrnf.growth_fraction));
    grown = std::min({desired - std::min<uint64_t>(desired, counts.replaced),
                      budget_of(step, counts) - counts.replaced, most});
  }
  counts.grown = static_cast<uint32_t>(grown);
  const uint32_t born = counts.replaced + counts.grown;
  control.counts.born = born;
  control.counts.added = born - std::min(born, counts.free);
  control.counts.free = counts.free - std::min(born, counts.free);
}

// mrnf_split: each drawn parent becomes two along its longest axis; the second takes the lowest
// free place, or a new row. Both begin with zero moments and statistics. Bindings  step r, control
// r, counts r, replace_order r [cap rows] u32, grow_order r [cap rows]
//           u32, free_list r, geometry x and its moments x x, sh_rest x and its moments x x,
//           statistics x.
void mrnf_split(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(step, control)) return;
  const MrnfCounts& counts = *call.buffer<const MrnfCounts>(2);
  const auto* replace_order = call.buffer<const uint32_t>(3);
  const auto* grow_order = call.buffer<const uint32_t>(4);
  const auto* free_list = call.buffer<const uint32_t>(5);
  auto* geometry = call.buffer<float>(6);
  auto* sh_rest = call.buffer<float>(9);
  auto* statistics = call.buffer<float>(12);
  const uint32_t rest_lanes = call.params_as<RowsParams>().sh_rest_lanes;
  const auto begin_anew = [&](uint64_t row) {
    for (const size_t moments : {7, 8}) {
      clear_lanes(call.buffer<float>(moments), row, kGeometryLanes);
      clear_lanes(call.buffer<float>(moments + 3), row, rest_lanes);
    }
    clear_lanes(statistics, row, kStatisticLanes);
  };
  parallel_for(uint64_t{counts.replaced} + counts.grown, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t parent =
          i < counts.replaced ? replace_order[i] : grow_order[i - counts.replaced];
      const uint64_t child =
          i < counts.free ? free_list[i] : uint64_t{control.counts.rows} + (i - counts.free);
      float lanes[kGeometryLanes];
      for (uint32_t l = 0; l < kGeometryLanes; ++l) lanes[l] = geometry_lane(geometry, parent, l);
      uint32_t longest = 0;
      for (uint32_t k = 1; k < 3; ++k) {
        if (lanes[kLaneScale + k] > lanes[kLaneScale + longest]) longest = k;
      }
      const float* q = lanes + kLaneRotation;
      const float w = q[0], x = q[1], y = q[2], z = q[3];
      const float s = 2.0f / (w * w + x * x + y * y + z * z);
      const float axes[3][3] = {
          {1 - s * (y * y + z * z), s * (x * y + w * z), s * (x * z - w * y)},
          {s * (x * y - w * z), 1 - s * (x * x + z * z), s * (y * z + w * x)},
          {s * (x * z + w * y), s * (y * z - w * x), 1 - s * (x * x + y * y)}};
      const float half = 0.5f * std::exp(std::min(lanes[kLaneScale + longest], kMaxRawScale));
      for (uint32_t k = 0; k < 3; ++k) {
        lanes[kLaneScale + k] += k == longest ? kSplitScaleLong : kSplitScaleShort;
      }
      const float opacity = kSplitOpacity * sigmoid(lanes[kLaneOpacity]);
      lanes[kLaneOpacity] = logit(std::clamp(opacity, 1e-7f, 1.0f - 1e-7f));
      for (uint32_t l = 0; l < kGeometryLanes; ++l) {
        const float offset = l < kLaneScale ? half * axes[longest][l] : 0.0f;
        geometry[row_index(parent, l, kGeometryLanes)] = lanes[l] + offset;
        geometry[row_index(child, l, kGeometryLanes)] = lanes[l] - offset;
      }
      for (uint32_t l = 0; l < rest_lanes; ++l) {
        sh_rest[row_index(child, l, rest_lanes)] = sh_rest[row_index(parent, l, rest_lanes)];
      }
      begin_anew(parent);
      begin_anew(child);
    }
  });
}

// mrnf_decay: rows that were seen lose opacity_decay of opacity, all rows scale_decay of their
// scale; then a new window of statistics begins. Rows just born or split lose no opacity.
// Bindings  step r, control r, geometry x, statistics x.
void mrnf_decay(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(step, control)) return;
  auto* geometry = call.buffer<float>(2);
  auto* statistics = call.buffer<float>(3);
  const float log_scale = std::log1p(-step.mrnf.scale_decay);
  const uint64_t rows = uint64_t{control.counts.rows} + control.counts.added;
  parallel_for(rows, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      const bool seen = statistic(statistics, row, kStatWeight) > 0;
      clear_lanes(statistics, row, kStatisticLanes);
      if (is_free(geometry, row)) continue;
      for (uint32_t k = 0; k < 3; ++k) {
        geometry[row_index(row, kLaneScale + k, kGeometryLanes)] += log_scale;
      }
      if (!seen || step.mrnf.opacity_decay <= 0) continue;
      float& raw = geometry[row_index(row, kLaneOpacity, kGeometryLanes)];
      const float opacity = sigmoid(raw) - step.mrnf.opacity_decay;
      raw = logit(std::clamp(opacity, 1e-12f, 1.0f - 6e-8f));
    }
  });
}

}  // namespace millrace::kernels
