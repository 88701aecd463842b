// Keeping some rows of a model on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "base/gaussian_cloud.h"

namespace millrace {

/// Leaves the rows of `cloud` for which `keep` [N] holds, in their order; returns how many.
uint64_t keep_rows(GaussianCloud& cloud, const std::vector<bool>& keep);

}  // namespace millrace
