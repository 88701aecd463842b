// Model files of every format: which one a name means, reading and writing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/gaussian_cloud.h"
#include "base/result.h"
#include "formats/html.h"
#include "formats/spz.h"

namespace millrace {

enum class ModelFormat : uint8_t { Ply, CompressedPly, Splat, Spz, Sog, Html };

/// What --export, --to and messages call it: "ply", "compressed-ply", "splat", "spz", "sog",
/// "html".
const char* format_name(ModelFormat format);
/// Its names end in this: ".ply", ".compressed.ply", ...
const char* format_extension(ModelFormat format);

/// The format that the end of `path` names. Error: Usage with the endings there are.
Result<ModelFormat> format_of_path(const std::filesystem::path& path);
/// Formats by name, each once, in the order given. Error: Usage naming the unknown one and all.
Result<std::vector<ModelFormat>> formats_of_names(const std::vector<std::string>& names);

struct WriteOptions {
  SpzOptions spz;
  HtmlOptions html;
};

/// Writes `cloud` in `format`, aside and renamed. All formats but PLY leave out rows without a
/// rotation, which are never drawn and which they cannot express. Errors: Internal (rows that are
/// not finite, by index), Output.
Result<void> write_model(const std::filesystem::path& path, const GaussianCloud& cloud,
                         ModelFormat format, const WriteOptions& options = {});

/// Reads a model of any format: by its first bytes, or by its name where a format has no mark.
/// Error: ErrorCode::Dataset naming the file and byte, row or property.
Result<GaussianCloud> read_model(const std::filesystem::path& path);

/// Without the rows that are never drawn because their quaternion is zero.
GaussianCloud drawable_rows(const GaussianCloud& cloud);

}  // namespace millrace
