// InstanceRoom: how many tile instances there is room for, predicted per view from its last frames,
// and in how many bands a frame goes that needs more.
#pragma once

#include <cstdint>
#include <vector>

#include "splat/workspace.h"
#include "train/options.h"
#include "train/schedule.h"

namespace millrace {

/// The capacity of the instance buffers, placed by the host alone: nothing here depends on whether
/// the gate let a transaction through, only on what the host has learnt late.
class InstanceRoom {
 public:
  /// All references must outlive this.
  InstanceRoom(Device& device, const TrainOptions& options, Workspace& workspace, size_t n_views);
  /// Views are known by number, the earlier ones unchanged.
  void set_view_count(size_t n_views);

  /// Makes room for a frame of `view` with up to `rows` rows; returns in how many bands it is to be
  /// drawn. Waits (reason Resize) only to grow near the device's limit.
  Result<uint32_t> ensure_blocking(uint32_t view, uint64_t rows);
  /// What the next attempt of `transaction` may use: 0 for all there is, or a cut that a test asked
  /// for, which holds for the first attempt that finds the gate open.
  uint64_t attempt_capacity(uint64_t transaction, uint32_t view);

  /// A frame of `view` was accepted.
  void accepted(uint32_t view, uint64_t instances, uint64_t rows);
  /// The gate closed at `transaction` and knows of a need of `instances`: makes room for it. Cuts
  /// of later transactions are still due. Waits (reason Replay) for the
  /// queue, which does nothing, so that old and new room are never held together.
  Result<void> refused_blocking(uint64_t transaction, uint64_t instances);
  /// After refused(): the frame of `view`, recorded in `n_bands`, is the one that did not fit.
  void note_refused_frame(uint32_t view, uint32_t n_bands, uint64_t instances, uint64_t rows);

  /// The most bands that a frame was drawn in; 1: none was divided.
  uint32_t most_bands() const { return most_bands_; }

 private:
  struct View {
    uint64_t instances = 0;  // high-water mark
    uint64_t rows = 0;       // at that mark; 0: not seen yet
    uint32_t bands = 1;      // least bands; 1 until a frame was refused
  };

  uint64_t limit() const;
  uint64_t predicted(const View& view, uint64_t rows) const;
  Result<void> grow_blocking(uint64_t capacity, bool gate_is_closed);

  Device& device_;
  const TrainOptions& options_;
  Workspace& workspace_;
  std::vector<View> views_;
  bool at_limit_ = false;                   // the buffers have grown as far as they may
  uint32_t most_bands_ = 1;                 // a view's first guess
  std::vector<bool> forced_used_;           // per entry of options.test_capacity
  uint64_t random_drawn_ = kNoTransaction;  // last transaction that drew a random capacity
};

}  // namespace millrace
