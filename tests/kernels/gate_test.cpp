// The sticky gate: decision, commit, reopening, and kernels that write nothing behind a closed one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "kernels/direct_call.h"
#include "kernels/kernel_id.h"

namespace millrace::test {
namespace {

void decide(StepBlock step, Control& control, const DecideParams& params) {
  call_kernel(kernels::gate_decide, 1, params, {step, control});
}
void decide_frame(StepBlock step, Control& control, uint64_t need, uint64_t capacity) {
  control.counts.instances = need;
  decide(step, control, {capacity, ~0ull, 0, 0});
}
void commit(StepBlock step, Control& control, uint32_t mode = 0) {
  call_kernel(kernels::commit_step, 1, RowsParams{0, mode}, {step, control});
}
void reopen(Control& control, uint32_t epoch) {
  call_kernel(kernels::gate_reopen, 1, ReopenParams{epoch, 0}, {control});
}

TEST(Gate, AcceptsAFrameThatJustFits) {
  Control control = open_control(10);
  decide_frame(block_of(4), control, 100, 100);
  EXPECT_EQ(control.gate.accepted, 4u);
  EXPECT_EQ(control.gate.closed, 0u);
  EXPECT_EQ(control.gate.committed, kNoTransaction);
  commit(block_of(4), control);
  EXPECT_EQ(control.gate.committed, 4u);
}

TEST(Gate, ClosesOnAFrameThatNeedsOneInstanceMore) {
  Control control = open_control(10);
  decide_frame(block_of(4), control, 101, 100);
  EXPECT_EQ(control.gate.accepted, kNoTransaction);
  EXPECT_EQ(control.gate.closed, 1u);
  EXPECT_EQ(control.gate.first_rejected, 4u);
  EXPECT_EQ(control.gate.need_instances, 101u);
  commit(block_of(4), control);
  EXPECT_EQ(control.gate.committed, kNoTransaction);
}

TEST(Gate, StaysClosedForLaterTransactionsThatWouldFit) {
  Control control = open_control(10);
  decide_frame(block_of(4), control, 101, 100);
  decide_frame(block_of(8), control, 1, 100);
  commit(block_of(8), control);
  EXPECT_EQ(control.gate.first_rejected, 4u);
  EXPECT_EQ(control.gate.accepted, kNoTransaction);
  EXPECT_EQ(control.gate.committed, kNoTransaction);
}

TEST(Gate, NeedsRiseBehindAClosedGateAndNeverFall) {
  Control control = open_control(1000);
  decide_frame(block_of(4), control, 101, 100);
  decide_frame(block_of(8), control, 500, 100);
  decide_frame(block_of(12), control, 300, 100);
  EXPECT_EQ(control.gate.need_instances, 500u);
  StepBlock refinement = block_of(13);
  refinement.max_rows = 5000;
  decide(refinement, control, {~0ull, 1000, 1, 0});
  EXPECT_EQ(control.gate.need_rows, 1050u);
  EXPECT_EQ(control.gate.need_instances, 500u);
}

TEST(Gate, AcceptsTheReplayAfterReopening) {
  Control control = open_control(10);
  decide_frame(block_of(4), control, 101, 100);
  reopen(control, 1);
  EXPECT_EQ(control.gate.closed, 0u);
  EXPECT_EQ(control.gate.need_instances, 0u);
  decide_frame(block_of(4, 1), control, 101, 200);
  EXPECT_EQ(control.gate.accepted, 4u);
}

TEST(Gate, IgnoresTransactionsOfAnOlderEpoch) {
  Control control = open_control(10);
  decide_frame(block_of(4), control, 101, 100);
  reopen(control, 1);
  decide_frame(block_of(4, 0), control, 1, 100);
  commit(block_of(4, 0), control);
  EXPECT_EQ(control.gate.accepted, kNoTransaction);
  EXPECT_EQ(control.gate.committed, kNoTransaction);
  EXPECT_EQ(control.gate.closed, 0u) << "a stale transaction may not close it either";
  decide_frame(block_of(4, 0), control, 1000, 100);
  EXPECT_EQ(control.gate.closed, 0u);
}

TEST(Gate, ARefinementThatNeedsMoreRowsThanThereAreClosesIt) {
  Control control = open_control(100);
  StepBlock step = block_of(5);
  step.max_rows = 1000;
  decide(step, control, {~0ull, 104, 1, 0});
  EXPECT_EQ(control.gate.closed, 1u);
  EXPECT_EQ(control.gate.need_rows, 105u);
}

TEST(Gate, TheCapLimitsWhatARefinementNeeds) {
  Control control = open_control(100);
  StepBlock step = block_of(5);
  step.max_rows = 102;
  decide(step, control, {~0ull, 102, 1, 0});
  EXPECT_EQ(control.gate.accepted, 5u);
}

TEST(Gate, CommitOfARefinementMakesItsRowsLiveOnce) {
  Control control = open_control(100);
  StepBlock step = block_of(5);
  step.max_rows = 1000;
  decide(step, control, {~0ull, 200, 1, 0});
  control.counts.added = 5;
  commit(step, control, 1);
  EXPECT_EQ(control.counts.rows, 105u);
  commit(step, control, 1);
  EXPECT_EQ(control.counts.rows, 105u);
}

TEST(Gate, CommitOfAnythingElseChangesNothingButWhatIsCommitted) {
  Control control = open_control(100);
  control.counts.added = 5;
  control.counts.visible = 42;
  const StepBlock step = block_of(5);
  decide_frame(step, control, 77, 100);
  const StepMetrics before = control.metrics;
  commit(step, control, 2);
  EXPECT_EQ(control.gate.committed, 5u);
  EXPECT_EQ(control.counts.rows, 100u);
  EXPECT_EQ(std::memcmp(&control.metrics, &before, sizeof(before)), 0);
}

TEST(Gate, CommitOfAStepReportsItsCounts) {
  Control control = open_control(100);
  control.counts.visible = 42;
  StepBlock step = block_of(40, 0);
  step.step = 10;
  decide_frame(step, control, 77, 100);
  commit(step, control);
  EXPECT_EQ(control.metrics.transaction, 40u);
  EXPECT_EQ(control.metrics.step, 10u);
  EXPECT_EQ(control.metrics.rows, 100u);
  EXPECT_EQ(control.metrics.visible, 42u);
  EXPECT_EQ(control.metrics.instances, 77u);
}

// The kernels that may run behind a closed gate: the gate's own, and those that count what a frame
// needs.
constexpr KernelId kRunBehindAClosedGate[] = {
    KernelId::gate_decide, KernelId::gate_decide_bands, KernelId::gate_reopen,
    KernelId::project,     KernelId::scan_tiles,        KernelId::count_tile_instances,
    KernelId::plan_bands,  KernelId::image_to_planar,   KernelId::ridge_map};

struct TableRow {
  KernelId id;
  kernels::CpuKernel kernel;
};
const TableRow kTable[] = {
#define MILLRACE_KERNEL(name, params, access) {KernelId::name, kernels::name},
#include "kernels/table.inc"
#undef MILLRACE_KERNEL
};

TEST(Gate, BehindAClosedGateEveryTrainingKernelWritesNothing) {
  constexpr size_t kBytes = 1u << 16;
  int n_checked = 0;
  for (const TableRow& row : kTable) {
    if (row.id < KernelId::image_to_planar) continue;  // the tensor facade knows no gate
    if (std::ranges::find(kRunBehindAClosedGate, row.id) != std::end(kRunBehindAClosedGate)) {
      continue;
    }
    SCOPED_TRACE(kernel_row(row.id).name);
    const std::string access = kernel_row(row.id).access;
    std::vector<std::vector<uint32_t>> arrays(access.size(), std::vector<uint32_t>(kBytes / 4, 1u));
    std::vector<std::byte> params(256, std::byte{1});
    // Whatever binding the control record is, it says that the gate is closed.
    for (auto& array : arrays) {
      Control control = open_control(8);
      control.gate.closed = 1;
      control.gate.first_rejected = 4;
      control.metrics.loss = control.metrics.l1 = control.metrics.ssim = control.metrics.mse = 7;
      std::copy_n(reinterpret_cast<const uint32_t*>(&control), sizeof(control) / 4, array.begin());
    }
    StepBlock step = block_of(8);
    step.noise_scale = step.min_opacity = step.rate_means = step.inv_sqrt_bias2 = 1;
    std::copy_n(reinterpret_cast<const uint32_t*>(&step), sizeof(step) / 4, arrays[0].begin());
    const auto before = arrays;
    std::vector<std::byte*> addresses;
    std::vector<uint64_t> sizes;
    for (auto& array : arrays) {
      addresses.push_back(reinterpret_cast<std::byte*>(array.data()));
      sizes.push_back(kBytes);
    }
    row.kernel({8, params.data(), addresses, sizes});
    EXPECT_EQ(arrays, before);
    ++n_checked;
  }
  EXPECT_GE(n_checked, 19);
}

}  // namespace
}  // namespace millrace::test
