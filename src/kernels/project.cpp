// From rows to tile instances: projection, tile counts, slots, emission and the stable sort by
// tile.
#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "kernels/band.h"
#include "kernels/isa/hot.h"
#include "kernels/kernel.h"
#include "kernels/tile_cover.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr uint64_t kRowsPerTask = 8;   // blocks of 32 rows
constexpr uint64_t kScanBlock = 4096;  // rows

}  // namespace

// project: screen-space Gaussians, how many tiles each touches, and depth keys.
// Bindings  step r, cameras r [V], geometry r, sh_rest r, control x, projected w [cap rows],
//           n_tiles w [cap rows] u32, depth_key w [cap rows] u32 (~0 where culled).
// Threads   one per row up to control.counts.rows. Runs behind a closed gate too, to raise its
// need. Source    TRAINING.md 2.2. Test: tests/splat/render_test.cpp against the double-precision
// oracle.
void project(const KernelCall& call) {
  const auto& params = call.params_as<FrameParams>();
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(4);
  const uint32_t rows = control.counts.rows;
  ProjectArgs args = {};
  args.step = &step;
  args.camera = call.buffer<const CameraRecord>(1) + step.view;
  args.geometry = call.buffer<const float>(2);
  args.sh_rest = call.buffer<const float>(3);
  args.sh_rest_lanes = params.sh_rest_lanes;
  args.tiles_x = params.tiles_x;
  args.tiles_y = params.tiles_y;
  args.rows = rows;
  args.projected = call.buffer<Projected>(5);
  args.n_tiles = call.buffer<uint32_t>(6);
  args.depth_key = call.buffer<uint32_t>(7);
  const HotKernels& hot = hot_kernels();
  const uint64_t n_blocks = (uint64_t{rows} + kRowBlock - 1) / kRowBlock;
  parallel_for(n_blocks, kRowsPerTask, [&](uint64_t begin, uint64_t end) {
    for (uint64_t block = begin; block < end; ++block) {
      hot.project_block(args, static_cast<uint32_t>(block));
      const uint64_t last = std::min<uint64_t>(rows, (block + 1) * kRowBlock);
      for (uint64_t row = block * kRowBlock; row < last; ++row) {
        if (args.n_tiles[row] == 0) continue;
        args.n_tiles[row] =
            hot.cover_tiles(args.projected[row], args.tiles_x, args.tiles_y, nullptr);
        if (args.n_tiles[row] == 0) args.depth_key[row] = ~0u;
      }
    }
  });
}

// scan_tiles: the first slot of each row, in depth order; how many instances and visible rows there
// are. Bindings  order r [cap rows] rows by depth, n_tiles r, control x, first_slot w [cap rows]
// u32.
// Writes    control.counts.instances (64 bits: the true need) and .visible; with n_bands > 1, which
//           numbers the slots of one band, neither. Slots beyond 32 bits are cut; such a frame
//           never passes the gate undivided.
void scan_tiles(const KernelCall& call) {
  const auto* order = call.buffer<const uint32_t>(0);
  const auto* n_tiles = call.buffer<const uint32_t>(1);
  Control& control = *call.buffer<Control>(2);
  auto* first_slot = call.buffer<uint32_t>(3);
  const uint64_t rows = control.counts.rows;
  const uint64_t n_blocks = (rows + kScanBlock - 1) / kScanBlock;
  std::vector<uint64_t> totals(n_blocks), visible(n_blocks);
  parallel_blocks(n_blocks, [&](uint64_t block) {
    const uint64_t end = std::min(rows, (block + 1) * kScanBlock);
    for (uint64_t i = block * kScanBlock; i < end; ++i) {
      const uint32_t n = n_tiles[order[i]];
      totals[block] += n;
      visible[block] += n != 0;
    }
  });
  uint64_t total = 0, n_visible = 0;
  for (uint64_t block = 0; block < n_blocks; ++block) {
    const uint64_t n = totals[block];
    totals[block] = total;
    total += n;
    n_visible += visible[block];
  }
  parallel_blocks(n_blocks, [&](uint64_t block) {
    uint64_t slot = totals[block];
    const uint64_t end = std::min(rows, (block + 1) * kScanBlock);
    for (uint64_t i = block * kScanBlock; i < end; ++i) {
      first_slot[order[i]] = static_cast<uint32_t>(slot);
      slot += n_tiles[order[i]];
    }
  });
  if (call.params_as<FrameParams>().n_bands > 1) return;
  control.counts.instances = total;
  control.counts.visible = static_cast<uint32_t>(n_visible);
}

// emit_instances: one instance for each (row, tile), in depth order.
// Bindings  step r, control r, projected r, n_tiles r (in a band: of the band), first_slot r,
//           bands r, instance_tile w [capacity] u32, instance_row w [capacity] u32.
// Writes    nothing unless the transaction was accepted.
void emit_instances(const KernelCall& call) {
  const auto& params = call.params_as<FrameParams>();
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const auto* projected = call.buffer<const Projected>(2);
  const auto* n_tiles = call.buffer<const uint32_t>(3);
  const auto* first_slot = call.buffer<const uint32_t>(4);
  const Band band = band_of(params, control, *call.buffer<const BandTable>(5));
  auto* instance_tile = call.buffer<uint32_t>(6);
  auto* instance_row = call.buffer<uint32_t>(7);
  const HotKernels& hot = hot_kernels();
  parallel_for(control.counts.rows, kRowsPerTask * kRowBlock, [&](uint64_t begin, uint64_t end) {
    TileList tiles(params);
    for (uint64_t row = begin; row < end; ++row) {
      if (n_tiles[row] == 0) continue;
      const uint32_t slot = first_slot[row] - band.rank;
      if (slot >= band.instances) continue;  // in another slice
      if (params.n_bands > 1) {
        std::ranges::copy(tiles.of(projected[row], band), instance_tile + slot);
      } else {
        hot.cover_tiles(projected[row], params.tiles_x, params.tiles_y, instance_tile + slot);
      }
      std::fill_n(instance_row + slot, n_tiles[row], static_cast<uint32_t>(row));
    }
  });
}

// sort_instances: a stable counting sort of slots by tile; slots are in depth order already.
// Bindings  step r, control r, bands r, instance_tile r, sorted_slots w [capacity] u32,
//           tile_ranges w [tiles,2] u32, histogram x [capacity / 65536 + 1, tiles] u32 scratch.
void sort_instances(const KernelCall& call) {
  const auto& params = call.params_as<FrameParams>();
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const auto* tile_of = call.buffer<const uint32_t>(3);
  auto* sorted = call.buffer<uint32_t>(4);
  auto* ranges = call.buffer<uint32_t>(5);
  auto* histogram = call.buffer<uint32_t>(6);
  const uint64_t n = band_of(params, control, *call.buffer<const BandTable>(2)).instances;
  const uint64_t n_tiles = uint64_t{params.tiles_x} * params.tiles_y;
  const uint64_t n_blocks = (n + kInstanceSortBlock - 1) / kInstanceSortBlock;
  parallel_blocks(n_blocks, [&](uint64_t block) {
    uint32_t* counts = histogram + block * n_tiles;
    std::fill_n(counts, n_tiles, 0u);
    const uint64_t end = std::min<uint64_t>(n, (block + 1) * kInstanceSortBlock);
    for (uint64_t i = block * kInstanceSortBlock; i < end; ++i) ++counts[tile_of[i]];
  });
  uint32_t next = 0;
  for (uint64_t tile = 0; tile < n_tiles; ++tile) {
    ranges[2 * tile] = next;
    for (uint64_t block = 0; block < n_blocks; ++block) {
      uint32_t& count = histogram[block * n_tiles + tile];
      const uint32_t here = count;
      count = next;
      next += here;
    }
    ranges[2 * tile + 1] = next;
  }
  parallel_blocks(n_blocks, [&](uint64_t block) {
    uint32_t* place = histogram + block * n_tiles;
    const uint64_t end = std::min<uint64_t>(n, (block + 1) * kInstanceSortBlock);
    for (uint64_t i = block * kInstanceSortBlock; i < end; ++i) {
      sorted[place[tile_of[i]]++] = static_cast<uint32_t>(i);
    }
  });
}

}  // namespace millrace::kernels
