// Models as compressed PLY (PlayCanvas, SuperSplat): packed words in chunks of 256 Gaussians
// (docs/formats.md).
#pragma once

#include <filesystem>

#include "base/gaussian_cloud.h"
#include "base/result.h"

namespace millrace {

/// 16 bytes a Gaussian, 72 bytes a chunk, and one byte for each higher SH coefficient. Every row
/// must have a rotation (has_rotation()). Written aside and renamed. Errors: Internal (what
/// check_writable() refuses), Output.
Result<void> write_compressed_ply(const std::filesystem::path& path, const GaussianCloud& cloud);

/// Reads old files too, whose chunks have no colour range. SH degree 4 is cut to 3. Error:
/// ErrorCode::Dataset naming the file and what is missing or the byte where it ends.
Result<GaussianCloud> read_compressed_ply(const std::filesystem::path& path);

/// Whether `path` begins as a PLY whose vertices are packed. Reads at most 64 KiB.
bool is_compressed_ply(const std::filesystem::path& path);

}  // namespace millrace
