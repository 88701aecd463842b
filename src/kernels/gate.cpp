// The sticky gate (ARCHITECTURE.md section 4): one decision per transaction, one commit, and the
// reopening.
#include <algorithm>

#include "kernels/kernel.h"
#include "kernels/splat_params.h"

namespace millrace::kernels {
namespace {

// The one decision of a transaction.
void decide(const StepBlock& step, Gate& gate, bool fits, uint64_t need_instances,
            uint64_t need_rows) {
  if (gate.closed) {
    gate.need_instances = std::max(gate.need_instances, need_instances);
    gate.need_rows = std::max(gate.need_rows, need_rows);
  } else if (!fits) {
    gate.closed = 1;
    gate.first_rejected = step.transaction;
    gate.need_instances = need_instances;
    gate.need_rows = need_rows;
  } else {
    gate.accepted = step.transaction;
  }
}

// The most rows that a refinement may leave: MCMC adds floor(N / 20), MRNF the grown fraction of
// its candidates, up to the cap.
uint64_t most_rows_after(const StepBlock& step, uint64_t rows) {
  uint64_t most = rows + rows / 20;
  if (step.mrnf.modes & kMrnfOn) {
    const bool grows = step.mrnf.modes & kMrnfGrows;
    most = rows + (grows ? grown_by(rows, growth_parts(step.mrnf.growth_fraction)) : 0);
  }
  return std::min<uint64_t>(most, step.max_rows);
}

}  // namespace

// gate_decide: may this transaction change anything that lasts?
// Bindings  step r, control x.
// Writes    gate.accepted; when closing, first_rejected and the needs. A gate that is closed stays
// closed, and
//           its needs still rise, so that one growth serves all queued transactions.
void gate_decide(const KernelCall& call) {
  const auto& params = call.params_as<DecideParams>();
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(1);
  Gate& gate = control.gate;
  gate.accepted = kNoTransaction;
  if (step.epoch != gate.epoch) return;

  uint64_t need_rows = 0, need_instances = 0;
  if (params.check_rows) {
    need_rows = most_rows_after(step, control.counts.rows);
  } else {
    need_instances = control.counts.instances;
  }
  const bool fits = need_rows <= params.row_capacity && need_instances <= params.capacity;
  decide(step, gate, fits, need_instances, need_rows);
}

// gate_decide_bands: gate_decide for a frame that is drawn in bands.
// Bindings  step r, control x, bands r.
void gate_decide_bands(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(1);
  const uint32_t n_needed = call.buffer<const BandTable>(2)->n_needed;
  control.gate.accepted = kNoTransaction;
  if (step.epoch != control.gate.epoch) return;
  const bool fits = n_needed <= call.params_as<DecideParams>().n_bands;
  decide(step, control.gate, fits, control.counts.instances, 0);
}

// gate_reopen: a queued write by the host after it has made room; begins a new epoch.
// Bindings  control x.
void gate_reopen(const KernelCall& call) {
  Gate& gate = call.buffer<Control>(0)->gate;
  gate.accepted = kNoTransaction;
  gate.epoch = call.params_as<ReopenParams>().epoch;
  gate.closed = 0;
  gate.need_instances = 0;
  gate.need_rows = 0;
}

// commit_step: the end of a transaction. Nothing if it was not accepted.
// Bindings  step r, control x. mode: CommitMode.
void commit_step(const KernelCall& call) {
  const StepBlock& step = *call.buffer<const StepBlock>(0);
  Control& control = *call.buffer<Control>(1);
  if (control.gate.accepted != step.transaction) return;
  control.gate.committed = step.transaction;
  const auto mode = static_cast<CommitMode>(call.params_as<RowsParams>().mode);
  if (mode == CommitMode::Refine) {
    control.counts.rows += control.counts.added;
    control.counts.added = 0;
  }
  if (mode != CommitMode::Step) return;
  StepMetrics& metrics = control.metrics;
  metrics.transaction = step.transaction;
  metrics.epoch = step.epoch;
  metrics.step = step.step;
  metrics.rows = control.counts.rows - control.counts.free;
  metrics.visible = control.counts.visible;
  metrics.instances = control.counts.instances;
}

}  // namespace millrace::kernels
