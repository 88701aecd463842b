// Point clouds from PLY files, for captures whose points are not in a COLMAP model.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "data/dataset.h"

namespace millrace {

/// Reads x y z and, where there, red green blue (uchar, or float 0..1) of the element "vertex";
/// ascii or binary of either byte order. Points without colour are mid grey. Errors: Dataset,
/// naming line or byte.
Result<PointCloud> read_point_ply(const std::filesystem::path& path);

}  // namespace millrace
