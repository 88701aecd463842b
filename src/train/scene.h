// Scene: what training takes from a dataset: camera records in world units, the world's size, and
// the Gaussians to begin with.
#pragma once

#include <vector>

#include "base/gaussian_cloud.h"
#include "data/dataset.h"
#include "data/scene_scale.h"
#include "kernels/splat_params.h"
#include "splat/workspace.h"
#include "train/options.h"
#include "train/train_step.h"

namespace millrace {

/// The near plane in units of the normaliser (median camera distance), so that no image depends on
/// the world's unit.
constexpr double kNearPlane = 0.01;

CameraRecord make_camera_record(const Camera& camera, double near_plane);
FrameSize frame_size(const Camera& camera);

/// For each Gaussian that training begins with: the mean squared distance to its 3 nearest
/// neighbours, in world units squared. The slow part of initial_cloud().
std::vector<float> initial_distances(const Dataset& dataset, const TrainOptions& options);
/// What the strategy of `state` measures before the first step: MRNF's bounds, with a hull around
/// the training cameras (TRAINING.md 3.4).
void begin_strategy(TrainState& state, const std::vector<View>& train_views,
                    const SceneScale& scale);

/// The Gaussians that training begins with: one per point, or `max_cap` of them drawn evenly if
/// there are more
/// (`note` says so). Log scale = log(init_scaling x sqrt(mean squared distance to the 3 nearest)).
/// `distances`, if known: of initial_distances() with the same options.
GaussianCloud initial_cloud(const Dataset& dataset, const TrainOptions& options, std::string* note,
                            const std::vector<float>& distances = {});

/// Adds points where photographs show none of the capture's, as --init-fill and --max-cap say;
/// returns what to tell the user, or nothing.
std::string add_fill_points(Dataset& dataset, const TrainOptions& options);
/// Host memory of the initial cloud of `n` points while it is made.
uint64_t initial_cloud_bytes(uint64_t n, int sh_degree);

}  // namespace millrace
