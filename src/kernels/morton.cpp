// Morton order: neighbours in space become neighbours in memory. Reordering goes through scratch,
// one group at a time, so that no binding depends on whether the gate was open.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr uint64_t kBlock = 4096;

// Spreads the low 10 bits of x to every third bit.
uint32_t spread_bits(uint32_t x) {
  x &= 0x3FF;
  x = (x | x << 16) & 0x030000FF;
  x = (x | x << 8) & 0x0300F00F;
  x = (x | x << 4) & 0x030C30C3;
  return (x | x << 2) & 0x09249249;
}

}  // namespace

// morton_keys: 30-bit Morton codes of the means inside their bounding box, and the identity order.
// Bindings  step r, control r, geometry r, keys w [cap rows] u32, order w [cap rows] u32.
void morton_keys(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(step, control)) return;
  const auto* geometry = call.buffer<const float>(2);
  auto* keys = call.buffer<uint32_t>(3);
  auto* order = call.buffer<uint32_t>(4);
  const uint64_t rows = control.counts.rows, n_blocks = (rows + kBlock - 1) / kBlock;
  struct Box {
    float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  };
  std::vector<Box> boxes(n_blocks);
  const auto mean = [&](uint64_t row, uint32_t k) {
    return geometry[row_index(row, kLaneMean + k, kGeometryLanes)];
  };
  parallel_blocks(n_blocks, [&](uint64_t block) {
    const uint64_t end = std::min(rows, (block + 1) * kBlock);
    for (uint64_t row = block * kBlock; row < end; ++row) {
      for (uint32_t k = 0; k < 3; ++k) {
        if (!std::isfinite(mean(row, k))) continue;
        boxes[block].low[k] = std::min(boxes[block].low[k], mean(row, k));
        boxes[block].high[k] = std::max(boxes[block].high[k], mean(row, k));
      }
    }
  });
  Box box;
  for (const Box& b : boxes) {
    for (int k = 0; k < 3; ++k) {
      box.low[k] = std::min(box.low[k], b.low[k]);
      box.high[k] = std::max(box.high[k], b.high[k]);
    }
  }
  parallel_for(rows, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      uint32_t key = 0;
      for (uint32_t k = 0; k < 3; ++k) {
        const float size = box.high[k] - box.low[k];
        const float unit = size > 0 ? (mean(row, k) - box.low[k]) / size : 0.0f;
        const float cell = std::isfinite(unit) ? std::clamp(unit * 1024.0f, 0.0f, 1023.0f) : 0.0f;
        key |= spread_bits(static_cast<uint32_t>(cell)) << k;
      }
      keys[row] = key;
      order[row] = static_cast<uint32_t>(row);
    }
  });
}

// gather_rows: scratch row i = group row order[i].
// Bindings  step r, control r, order r u32, group r, scratch w (as large as the group).
void gather_rows(const KernelCall& call) {
  const uint32_t lanes = call.params_as<GatherRowsParams>().lanes;
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const auto* order = call.buffer<const uint32_t>(2);
  const auto* group = call.buffer<const float>(3);
  auto* scratch = call.buffer<float>(4);
  parallel_for(control.counts.rows, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      for (uint32_t l = 0; l < lanes; ++l) {
        scratch[row_index(row, l, lanes)] = group[row_index(order[row], l, lanes)];
      }
    }
  });
}

// restore_rows: the group takes the scratch's live rows.
// Bindings  step r, control r, scratch r, group x.
void restore_rows(const KernelCall& call) {
  const uint32_t lanes = call.params_as<GatherRowsParams>().lanes;
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const auto* scratch = call.buffer<const float>(2);
  auto* group = call.buffer<float>(3);
  parallel_for(control.counts.rows, kBlock, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      for (uint32_t l = 0; l < lanes; ++l) {
        group[row_index(row, l, lanes)] = scratch[row_index(row, l, lanes)];
      }
    }
  });
}

}  // namespace millrace::kernels
