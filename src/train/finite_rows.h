// What of a model can be saved: rows whose every value is a number.
#pragma once

#include <cstdint>

#include "base/gaussian_cloud.h"

namespace millrace {

/// Removes the rows that hold an infinity or a NaN; returns how many there were.
uint64_t drop_non_finite_rows(GaussianCloud& cloud);

/// Removes the rows without a Gaussian, whose quaternion is zero; returns how many there were.
uint64_t drop_free_rows(GaussianCloud& cloud);

}  // namespace millrace
