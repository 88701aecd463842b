// From instance gradients back to the rows, with the two epilogues: Adam in place, or a gradient
// buffer.
#include <atomic>

#include "base/parallel.h"
#include "kernels/isa/hot.h"
#include "kernels/kernel.h"
#include "kernels/transaction.h"

namespace millrace::kernels {
namespace {

uint64_t n_row_blocks(const Control& control) {
  return (uint64_t{control.counts.rows} + kRowBlock - 1) / kRowBlock;
}

// Runs a block function over all row blocks and adds up what it returns.
template <class Block>
uint64_t sum_over_blocks(uint64_t n_blocks, const Block& block_function) {
  std::atomic<uint64_t> total = 0;
  parallel_for(n_blocks, 8, [&](uint64_t begin, uint64_t end) {
    uint64_t n = 0;
    for (uint64_t block = begin; block < end; ++block)
      n += block_function(static_cast<uint32_t>(block));
    total += n;
  });
  return total;
}

// Bindings 0..5 of both forms of the projection's backward pass.
BackwardArgs backward_args(const KernelCall& call, const Control& control) {
  BackwardArgs args = {};
  args.step = call.buffer<const StepBlock>(0);
  args.camera = call.buffer<const CameraRecord>(1) + args.step->view;
  args.n_tiles = call.buffer<const uint32_t>(3);
  args.first_slot = call.buffer<const uint32_t>(4);
  args.gradients = call.buffer<const InstanceGradient>(5);
  args.sh_rest_lanes = call.params_as<BackwardParams>().sh_rest_lanes;
  args.rows = control.counts.rows;
  args.live = control.counts.rows - control.counts.free;
  args.bounds = control.bounds;
  return args;
}

}  // namespace

// project_backward: sums each row's records in slot order, goes back through projection, applies
// Adam. Bindings  step r, cameras r, control x (skipped_rows), n_tiles r, first_slot r, gradients
// r,
//           geometry x and its two moments x x, sh_rest x and its two moments x x,
//           statistics x [ceil(cap rows/32), kStatisticLanes, 32], or anything if params.statistics
//           says that none are kept.
// Writes    nothing unless the transaction was accepted.
// Numerics  a row whose gradient is not finite is skipped and counted.
// Source    TRAINING.md 2.6, 1.4; arXiv:1412.6980. Test: tests/splat/gradient_scenario_test.cpp.
void project_backward(const KernelCall& call) {
  Control& control = *call.buffer<Control>(2);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  BackwardArgs args = backward_args(call, control);
  args.geometry = {call.buffer<float>(6), call.buffer<float>(7), call.buffer<float>(8)};
  args.sh_rest = {call.buffer<float>(9), call.buffer<float>(10), call.buffer<float>(11)};
  const uint32_t statistics = call.params_as<BackwardParams>().statistics;
  args.statistics = statistics & kStatisticsOn ? call.buffer<float>(12) : nullptr;
  args.records_edges = (statistics & kStatisticsEdges) != 0;
  const HotKernels& hot = hot_kernels();
  control.counts.skipped_rows += sum_over_blocks(
      n_row_blocks(control), [&](uint32_t block) { return hot.backward_adam_block(args, block); });
}

// project_backward_accumulate: the same gradients, added to a gradient buffer (view batches,
// bands). Bindings  step r, cameras r, control r, n_tiles r, first_slot r, gradients r, geometry r,
// sh_rest r,
//           d_geometry x, d_sh_rest x (zeroed at the start of the attempt).
void project_backward_accumulate(const KernelCall& call) {
  const Control& control = *call.buffer<const Control>(2);
  if (!accepted(*call.buffer<const StepBlock>(0), control)) return;
  BackwardArgs args = backward_args(call, control);
  args.geometry.value = call.buffer<float>(6);
  args.sh_rest.value = call.buffer<float>(7);
  args.d_geometry = call.buffer<float>(8);
  args.d_sh_rest = call.buffer<float>(9);
  const HotKernels& hot = hot_kernels();
  parallel_for(n_row_blocks(control), 8, [&](uint64_t begin, uint64_t end) {
    for (uint64_t block = begin; block < end; ++block) {
      hot.backward_accumulate_block(args, static_cast<uint32_t>(block));
    }
  });
}

// adam_step: Adam from a gradient buffer; regularisers are added here, as in the fused form.
// Nothing draws scales down here: it knows no statistics. Bindings  step r, control x, d_geometry
// r, d_sh_rest r, geometry x x x, sh_rest x x x.
void adam_step(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(1);
  if (!accepted(step, control)) return;
  BackwardArgs args = {};
  args.step = &step;
  args.sh_rest_lanes = call.params_as<BackwardParams>().sh_rest_lanes;
  args.rows = control.counts.rows;
  args.live = control.counts.rows - control.counts.free;
  args.bounds = control.bounds;
  args.d_geometry = call.buffer<float>(2);
  args.d_sh_rest = call.buffer<float>(3);
  args.geometry = {call.buffer<float>(4), call.buffer<float>(5), call.buffer<float>(6)};
  args.sh_rest = {call.buffer<float>(7), call.buffer<float>(8), call.buffer<float>(9)};
  const HotKernels& hot = hot_kernels();
  control.counts.skipped_rows += sum_over_blocks(
      n_row_blocks(control), [&](uint32_t block) { return hot.adam_block(args, block); });
}

}  // namespace millrace::kernels
