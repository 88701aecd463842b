// Models as `.splat`: 32 bytes a Gaussian, no header, no view-dependent colour (docs/formats.md).
#pragma once

#include <filesystem>

#include "base/gaussian_cloud.h"
#include "base/result.h"

namespace millrace {

/// Position and linear scale as float32, colour and opacity and quaternion as bytes; the most
/// visible Gaussians first. Written aside and renamed. Errors: Internal (what check_writable()
/// refuses), Output.
Result<void> write_splat(const std::filesystem::path& path, const GaussianCloud& cloud);

/// Error: ErrorCode::Dataset naming the file and the byte or the row.
Result<GaussianCloud> read_splat(const std::filesystem::path& path);

}  // namespace millrace
