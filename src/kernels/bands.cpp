// Frames drawn in bands: when a frame's instances do not all fit, its tiles are cut into runs that
// do, and each run is emitted, sorted and blended by itself.
#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "kernels/band.h"
#include "kernels/kernel.h"
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
    TileList tiles(params);
    for (uint64_t row = begin; row < end; ++row) {
      if (n_tiles[row] == 0) continue;
      for (const uint32_t tile : tiles.of(projected[row])) {
        std::atomic_ref<uint32_t>(tile_counts[tile]).fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
}

// plan_bands: cuts the tiles, in order, into runs of at most `capacity` instances; a tile that has
// more into slices by depth.
// Bindings  tile_counts r [tiles] u32, bands w (one BandTable).
// Writes    n_needed, also beyond n_bands.
void plan_bands(const KernelCall& call) {
  const auto& params = call.params_as<FrameParams>();
  const auto* tile_counts = call.buffer<const uint32_t>(0);
  BandTable& table = *call.buffer<BandTable>(1);
  const uint32_t n_tiles = params.tiles_x * params.tiles_y;
  const auto capacity = static_cast<uint32_t>(std::min<uint64_t>(params.capacity, ~0u));
  table.n_needed = 0;
  const auto add = [&](Band band) {
    if (table.n_needed < kMaxBands) table.bands[table.n_needed] = band;
    ++table.n_needed;
  };
  uint32_t first = 0, n_here = 0;
  const auto end_run = [&](uint32_t last) {
    if (first < last) add({first, last, 0, n_here, 1, 1, table.n_needed});
    first = last;
    n_here = 0;
  };
  for (uint32_t tile = 0; tile < n_tiles; ++tile) {
    const uint32_t n = tile_counts[tile];
    if (n > capacity - n_here) end_run(tile);
    n_here += n;
    if (n <= capacity) continue;
    const uint32_t front = table.n_needed, n_slices = (n - 1) / capacity + 1;
    for (uint32_t slice = 0; slice < n_slices; ++slice) {
      const uint32_t rank = slice * capacity;
      add({tile, tile + 1, rank, std::min(capacity, n - rank), slice == 0 ? 1u : 0u,
           slice + 1 == n_slices ? 1u : 0u, front + n_slices - 1 - slice});
    }
    first = tile + 1;
    n_here = 0;
  }
  end_run(n_tiles);
  for (uint32_t band = table.n_needed; band < kMaxBands; ++band) {
    table.bands[band] = {n_tiles, n_tiles, 0, 0, 1, 1, band};
  }
}

// count_band: how many instances each row has in the band's tiles, whichever slice they fall into.
// Bindings  step r, control r, projected r, n_tiles r, bands r, band_tiles w [cap rows] u32.
// Writes    nothing unless the transaction was accepted.
void count_band(const KernelCall& call) {
  const auto& params = call.params_as<FrameParams>();
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const auto* projected = call.buffer<const Projected>(2);
  const auto* n_tiles = call.buffer<const uint32_t>(3);
  const Band band = band_of(params, control, *call.buffer<const BandTable>(4));
  auto* band_tiles = call.buffer<uint32_t>(5);
  parallel_for(control.counts.rows, kRowsPerTask, [&](uint64_t begin, uint64_t end) {
    TileList tiles(params);
    for (uint64_t row = begin; row < end; ++row) {
      band_tiles[row] =
          n_tiles[row] == 0 ? 0 : static_cast<uint32_t>(tiles.of(projected[row], band).size());
    }
  });
}

// sum_band_gradients: adds the band's records to one sum per row, in slot order. A row's slots
// follow its tiles, it has one in a tile, and bands are taken in the order of their tiles: the sum
// is, to the bit, that of an undivided frame.
// Bindings  step r, control r, n_tiles r, band_tiles r, first_slot r, gradients r, bands r,
//           sums x [cap rows] InstanceGradient, visible x [cap rows] u32 (1 where n_tiles is not
//           0).
// Writes    nothing unless the transaction was accepted.
void sum_band_gradients(const KernelCall& call) {
  const Control& control = *call.buffer<const Control>(1);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  const auto* n_tiles = call.buffer<const uint32_t>(2);
  const auto* band_tiles = call.buffer<const uint32_t>(3);
  const auto* first_slot = call.buffer<const uint32_t>(4);
  const auto* records = call.buffer<const float>(5);
  const auto& params = call.params_as<FrameParams>();
  const Band band = band_of(params, control, *call.buffer<const BandTable>(6));
  auto* sums = call.buffer<float>(7);
  auto* visible = call.buffer<uint32_t>(8);
  parallel_for(control.counts.rows, kRowsPerTask, [&](uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
      float* sum = sums + row * kRecordFloats;
      if (params.band == 0) {
        std::fill_n(sum, kRecordFloats, 0.0f);
        visible[row] = n_tiles[row] != 0 ? 1 : 0;
      }
      const uint32_t slot = first_slot[row] - band.rank;
      if (slot >= band.instances) continue;  // in another slice
      const float* record = records + uint64_t{slot} * kRecordFloats;
      for (uint32_t i = 0; i < band_tiles[row]; ++i, record += kRecordFloats) {
        for (int k = 0; k < kRecordFloats; ++k) sum[k] += record[k];
      }
    }
  });
}

}  // namespace millrace::kernels
