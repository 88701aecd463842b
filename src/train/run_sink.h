// RunSink: where a Runner puts what a run shows while it goes on.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "splat/model.h"
#include "splat/workspace.h"

namespace millrace {

/// One view of an evaluation, rendered.
struct RenderedView {
  uint32_t steps = 0;  // steps done
  uint32_t view = 0;   // position among the held-out views
  uint64_t gaussians = 0;
  FrameSize size;
  Ticket image;  // [3,H,W] F32, ready
};

/// Called from the training thread. Everything arrives once and in the order of the transactions,
/// whatever was replayed.
class RunSink {
 public:
  virtual ~RunSink() = default;
  /// Called before each view of an evaluation is recorded; may wait until images that were handed
  /// over have been worked off.
  virtual Result<void> make_room_blocking() = 0;
  /// Called before a snapshot is recorded; may wait until earlier ones have been worked off.
  virtual Result<void> make_snapshot_room_blocking() { return {}; }
  virtual void rendered(const RenderedView& view) = 0;
  /// `snapshot` is ready and holds the parameters after `steps` steps.
  virtual void snapshot(uint32_t steps, ModelSnapshot snapshot) = 0;
  /// A refinement after `step` was accepted and left these counts.
  virtual void refined(uint32_t step, const Counts& counts) {
    static_cast<void>(step);
    static_cast<void>(counts);
  }
  /// A pause that was asked for has ended.
  virtual void paused() {}
  /// Called now and then: reports what was done in the meantime. The first error ends the run.
  virtual Result<void> deliver() = 0;
};

}  // namespace millrace
