// Gaussians as PLY in the INRIA layout (docs/formats.md).
#pragma once

#include <filesystem>

#include "base/gaussian_cloud.h"
#include "base/result.h"

namespace millrace {

/// Writes binary little-endian float32 properties x y z nx ny nz f_dc_0..2 f_rest_0..3K-1
/// (channel-major) opacity scale_0..2 rot_0..3, aside and renamed. Refuses non-finite values,
/// naming the first rows (ErrorCode::Internal). Error: ErrorCode::Output.
Result<void> write_gaussian_ply(const std::filesystem::path& path, const GaussianCloud& cloud);

/// Reads any Gaussian PLY: properties by name and declared type, ascii or binary little/big endian,
/// SH degree 0..4 (4 is cut to 3), missing normals or f_rest, extra elements and properties, CRLF
/// headers. An opacity of +-infinity (alpha exactly 0 or 1) becomes +-20, a log-scale of -infinity
/// -30; any other non-finite value is an error. Without f_dc, red green blue give the colour.
/// Errors: ErrorCode::Dataset naming the file and what is missing or the byte where it ends.
Result<GaussianCloud> read_gaussian_ply(const std::filesystem::path& path);

}  // namespace millrace
