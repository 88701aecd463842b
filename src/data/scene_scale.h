// The size of a scene, from its cameras: what makes training independent of the unit of the world.
#pragma once

#include "data/dataset.h"

namespace millrace {

/// Dividing world coordinates by `normaliser` makes the median distance of a camera centre from the
/// mean of all centres 1; `scene_scale` is 1.1 times the largest such distance after that division,
/// so it does not depend on the world's unit. A learning rate "1.6e-4 x scene_scale" of the
/// normalised world is 1.6e-4 x scene_scale x normaliser in the world as delivered.
struct SceneScale {
  double normaliser = 1;
  double scene_scale = 1.1;
};

/// Over all views, held out or not. Where all centres coincide (one camera, a turning tripod) there
/// is no distance to go by: normaliser 1 and scene_scale 1.1.
SceneScale scene_scale(const Dataset& dataset);

}  // namespace millrace
