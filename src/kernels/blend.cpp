// Blending of all tiles, forward and backward.

#include "base/parallel.h"
#include "kernels/band.h"
#include "kernels/isa/hot.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

template <class Tile>
void for_each_tile(const Band& band, const Tile& body) {
  parallel_for(band.last_tile - band.first_tile, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) body(band.first_tile + static_cast<uint32_t>(i));
  });
}

// What this pass draws.
Band band_of_pass(const KernelCall& call) {
  return band_of(call.params_as<FrameParams>(), *call.buffer<const Control>(1),
                 *call.buffer<const BandTable>(7));
}

// Bindings 0..6 of both directions.
BlendArgs blend_args(const KernelCall& call, const Band& band) {
  const auto& params = call.params_as<FrameParams>();
  BlendArgs args = {};
  args.step = call.buffer<const StepBlock>(0);
  args.projected = call.buffer<const Projected>(2);
  args.instance_row = call.buffer<const uint32_t>(3);
  args.sorted_slots = call.buffer<const uint32_t>(4);
  args.tile_ranges = call.buffer<const uint32_t>(5);
  args.width = params.width;
  args.height = params.height;
  args.tiles_x = params.tiles_x;
  args.background = params.inputs & kFrameHasBackground ? call.buffer<const uint8_t>(6) : nullptr;
  args.rank = band.rank;
  args.is_front = band.is_front != 0;
  args.is_back = band.is_back != 0;
  return args;
}

}  // namespace

// blend_forward: the image, front to back.
// Bindings  step r, control r, projected r, instance_row r, sorted_slots r, tile_ranges r,
//           background r ([3,H,W] u8, if params.inputs says so), bands r, image x [3,H,W],
//           transmittance x [tiles,256], last x [tiles,256] u32, depth_alpha x [2,H,W] (written
//           only if write_depth; depth is sum w z, not normalised). Read by a slice of a tile, for
//           what the slice before it has left there.
// Writes    nothing unless the transaction was accepted.
// Source    TRAINING.md 2.4. Test: tests/splat/render_test.cpp.
void blend_forward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  const auto& params = call.params_as<FrameParams>();
  const Band band = band_of_pass(call);
  BlendArgs args = blend_args(call, band);
  args.image = call.buffer<float>(8);
  args.transmittance = call.buffer<float>(9);
  args.last = call.buffer<uint32_t>(10);
  args.depth_alpha = params.write_depth ? call.buffer<float>(11) : nullptr;
  const HotKernels& hot = hot_kernels();
  for_each_tile(band, [&](uint32_t tile) { hot.blend_forward_tile(args, tile); });
}

// blend_backward: one 2D gradient record per instance, each written once by its tile.
// Bindings  step r, control r, projected r, instance_row r, sorted_slots r, tile_ranges r,
//           background r, bands r, transmittance r, last r, d_image r [3,H,W], error_map r ([H,W],
//           if params.inputs says so), d_alpha r ([H,W], likewise: the gradient to the frame's
//           opacity 1 - transmittance), gradients w [capacity], carry x.
// Source    TRAINING.md 2.5. Test: tests/splat/gradient_scenario_test.cpp.
void blend_backward(const KernelCall& call) {
  if (!accepted(*call.buffer<const StepBlock>(0), *call.buffer<const Control>(1))) return;
  const auto& params = call.params_as<FrameParams>();
  const Band band = band_of_pass(call);
  BlendArgs args = blend_args(call, band);
  args.transmittance = call.buffer<float>(8);
  args.last = call.buffer<uint32_t>(9);
  args.d_image = call.buffer<const float>(10);
  args.error_map = params.inputs & kFrameHasErrorMap ? call.buffer<const float>(11) : nullptr;
  args.d_alpha = params.inputs & kFrameHasAlphaGradient ? call.buffer<const float>(12) : nullptr;
  args.gradients = call.buffer<InstanceGradient>(13);
  args.carry = call.buffer<float>(14);
  const HotKernels& hot = hot_kernels();
  for_each_tile(band, [&](uint32_t tile) { hot.blend_backward_tile(args, tile); });
}

}  // namespace millrace::kernels
