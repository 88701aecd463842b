// The order of a model's rows that puts neighbours in space beside each other.
#pragma once

#include <cstdint>
#include <vector>

#include "base/gaussian_cloud.h"

namespace millrace {

/// All rows by the Morton code of their means, 21 bits an axis. Deterministic.
std::vector<uint32_t> morton_order(const GaussianCloud& cloud);

/// The rows `rows` of `cloud`, in that order.
GaussianCloud take_rows(const GaussianCloud& cloud, const std::vector<uint32_t>& rows);

}  // namespace millrace
