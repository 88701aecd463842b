// How many tile instances a run begins with, before anything large is allocated.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"
#include "data/scene_scale.h"
#include "train/options.h"

namespace millrace {

/// The instances of the training view that needs most of them, with the Gaussians that training
/// begins with (initial_cloud()). Counted by the trainer's own kernels, on a cpu device of its own
/// that is gone on return (0 where there is none); of many Gaussians or views an even sample stands
/// for all. `distances`: of initial_distances(). Waits (UserRead, on that device's ledger).
Result<uint64_t> start_instances_blocking(const Dataset& dataset, const TrainOptions& options,
                                          const SceneScale& scale,
                                          const std::vector<float>& distances);

}  // namespace millrace
