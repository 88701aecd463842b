// What a run allocates on its device, and when: one place for the run itself and for its memory
// plan.
#pragma once

#include <cstdint>
#include <vector>

#include "train/options.h"
#include "train/train_step.h"

namespace millrace {

/// Rows that a model of `n_rows` begins with room for.
uint64_t first_row_capacity(uint64_t n_rows, uint64_t max_cap);
/// Instances that a model of `n_rows` is expected to need, if the run begins with `at_start` in a
/// frame.
uint64_t expected_instances(uint64_t n_rows, uint64_t at_start);
/// Instances to begin with: those expected, within --instance-budget.
uint64_t first_instance_capacity(uint64_t n_rows, uint64_t at_start, const TrainOptions& options);

/// Device memory of the instance buffers of a step.
uint64_t instance_room_bytes(uint64_t capacity, uint64_t n_tiles);

/// What the frames of a run with these settings need beside an image.
PixelNeeds pixel_needs(const TrainOptions& options);

/// Allocates what a step and a refinement of `state.model` work in, for frames of `sizes`.
void make_working_memory(TrainState& state, const std::vector<FrameSize>& sizes,
                         uint64_t n_instances, const PixelNeeds& needs);

/// Has the model keep what `options.strategy` needs to know of its rows. `n_rows`: how many it has.
void prepare_strategy(Model& model, const TrainOptions& options, uint64_t n_rows);

/// Makes room for `rows` rows, twice what there was (within `max_cap`) or more; nothing if they
/// fit. Waits (reason Resize) if old and new room together would pass the device's limit.
Result<void> grow_row_room_blocking(TrainState& state, uint64_t rows, uint64_t max_cap);

/// Before `bytes` are allocated in place of what was just released: if they would pass the device's
/// limit, waits (reason Resize) until queued work has let go of it.
Result<void> make_device_room_blocking(Device& device, uint64_t bytes);

}  // namespace millrace
