// Models as SOG version 2 (PlayCanvas): lossless WebP images and a meta.json, in a ZIP archive or a
// folder (docs/formats.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/gaussian_cloud.h"
#include "base/result.h"
#include "formats/zip.h"

namespace millrace {

/// meta.json and the images. Every row must have a rotation (has_rotation()) and finite values; at
/// least one. Error: Internal if an image cannot be encoded.
Result<std::vector<ZipEntry>> encode_sog(const GaussianCloud& cloud);
/// Written aside and renamed. Errors: Internal (what check_writable() refuses, no rows), Output.
Result<void> write_sog(const std::filesystem::path& path, const GaussianCloud& cloud);

/// `what` opens messages. Error: ErrorCode::Dataset naming the entry and what is wrong with it.
Result<GaussianCloud> decode_sog(const std::vector<ZipEntry>& entries, const std::string& what);
/// An archive, a folder with a meta.json, or that meta.json.
Result<GaussianCloud> read_sog(const std::filesystem::path& path);

}  // namespace millrace
