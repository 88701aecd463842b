// Frames drawn in bands: when a frame's instances do not all fit, its tiles are cut into runs that
// do, and each run is emitted, sorted and blended by itself.
#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel.h"
#include "kernels/tile_cover.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

constexpr uint64_t kRowsPerTask = 256;
constexpr int kRecordFloats = sizeof(InstanceGradient) / sizeof(float);

}  // namespace

// count_tile_instances: how many instances each tile of the frame has.
// Bindings  control r, projected r, n_tiles r, tile_counts w [tiles] u32.
// Threads   one per row up to control.counts.rows. Runs behind a closed gate too: a count.
void count_tile_instances(const KernelCall& call) {
  const auto& params = call.params_as<FrameParams>();
  const Control& control = *call.buffer<const Control>(0);
  const auto* projected = call.buffer<const Projected>(1);
  const auto* n_tiles = call.buffer<const uint32_t>(2);
  auto* tile_counts = call.buffer<uint32_t>(3);
  std::fill_n(tile_counts, uint64_t{params.tiles_x} * params.tiles_y, 0u);
  parallel_for(control.counts.rows, kRowsPerTask, [&](uint64_t begin, uint64_t end) {
    std::vector<uint32_t> tiles;
    for (uint64_t row = begin; row < end; ++row) {
      if (n_tiles[row] == 0) continue;
      tiles.resize(n_tiles[row]);
      cover_tiles(projected[row], params.tiles_x, params.tiles_y, tiles.data());
      for (const uint32_t tile : tiles) {
        std::atomic_ref<uint32_t>(tile_counts[tile]).fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
}

// plan_bands: cuts the tiles, in order, into the fewest runs of at most `capacity` instances.
// Bindings  tile_counts r [tiles] u32, bands w (one BandTable).
// Writes    n_needed, also beyond n_bands; kNoBands if a single tile does not fit.
void plan_bands(const KernelCall& call) {
  const auto& params = call.params_as<FrameParams>();
  const auto* tile_counts = call.buffer<const uint32_t>(0);
  BandTable& bands = *call.buffer<BandTable>(1);
  const uint32_t n_tiles = params.tiles_x * params.tiles_y;
  uint64_t n_here = 0;
  uint32_t band = 0;
  bool fits = true;
  const auto close_band = [&](uint32_t end) {
    if (band < kMaxBands) {
      bands.instances[band] = static_cast<uint32_t>(n_here);
      bands.first_tile[band + 1] = end;
    }
    ++band;
    n_here = 0;
  };
  bands.first_tile[0] = 0;
  for (uint32_t tile = 0; tile < n_tiles; ++tile) {
    fits &= tile_counts[tile] <= params.capacity;
    if (n_here + tile_counts[tile] > params.capacity && n_here > 0) close_band(tile);
    n_here += tile_counts[tile];
  }
  close_band(n_tiles);
  bands.n_needed = fits ? band : kNoBands;
  for (; band < kMaxBands; ++band) {
    bands.instances[band] = 0;
    bands.first_tile[band + 1] = n_tiles;
  }
}

// count_band: how many instances of the band each row has.
// Bindings  step r, control r, projected r, n_tiles r, bands r, band_tiles w [cap rows] u32.
// Writes    nothing unless the transaction was accepted.
void count_band(const KernelCall& call) {
  const auto& params = call.params_as<FrameParams>();
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const auto* projected = call.buffer<const Projected>(2);
  const auto* n_tiles = call.buffer<const uint32_t>(3);
  const BandTable& bands = *call.buffer<const BandTable>(4);
  auto* band_tiles = call.buffer<uint32_t>(5);
  const uint32_t first = bands.first_tile[params.band], last = bands.first_tile[params.band + 1];
  parallel_for(control.counts.rows, kRowsPerTask, [&](uint64_t begin, uint64_t end) {
    std::vector<uint32_t> tiles;
    for (uint64_t row = begin; row < end; ++row) {
      tiles.resize(n_tiles[row]);
      if (n_tiles[row] > 0) {
        cover_tiles(projected[row], params.tiles_x, params.tiles_y, tiles.data());
      }
      band_tiles[row] = static_cast<uint32_t>(std::count_if(
          tiles.begin(), tiles.end(), [&](uint32_t tile) { return first <= tile && tile < last; }));
    }
  });
}

// sum_band_gradients: adds the band's records to one sum per row, in slot order. A row's slots
// follow its tiles and the bands are taken in order, so the sum is, to the bit, that of an
// undivided frame. Bindings  step r, control r, n_tiles r, band_tiles r, first_slot r, gradients r,
//           sums x [cap rows] InstanceGradient, visible x [cap rows] u32 (1 where n_tiles is not
//           0).
// Writes    nothing unless the transaction was accepted.
void sum_band_gradients(const KernelCall& call) {
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const bool begins = call.params_as<FrameParams>().band == 0;
  const auto* n_tiles = call.buffer<const uint32_t>(2);
  const auto* band_tiles = call.buffer<const uint32_t>(3);
  const auto* first_slot = call.buffer<const uint32_t>(4);
  const auto* records = call.buffer<const float>(5);
  auto* sums = call.buffer<float>(6);
  auto* visible = call.buffer<uint32_t>(7);
  parallel_for(control.counts.rows, kRowsPerTask, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      float* sum = sums + row * kRecordFloats;
      if (begins) {
        std::fill_n(sum, kRecordFloats, 0.0f);
        visible[row] = n_tiles[row] != 0 ? 1 : 0;
      }
      const float* record = records + uint64_t{first_slot[row]} * kRecordFloats;
      for (uint32_t i = 0; i < band_tiles[row]; ++i, record += kRecordFloats) {
        for (int k = 0; k < kRecordFloats; ++k) sum[k] += record[k];
      }
    }
  });
}

}  // namespace millrace::kernels
