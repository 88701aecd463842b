// Gaussians as PLY in the INRIA layout (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/gaussian_cloud.h"
#include "base/result.h"

namespace millrace {

/// Writes the file of write_gaussian_ply() piece by piece.
class GaussianPlyWriter {
 public:
  /// For `n_rows` rows in all, of SH degree 0 to 3. `mip_filter` marks the file as trained with it.
  static Result<GaussianPlyWriter> create(const std::filesystem::path& path, uint64_t n_rows,
                                          int sh_degree, bool mip_filter);
  /// The next rows, of the same SH degree. Refuses non-finite values (ErrorCode::Internal).
  Result<void> add(const GaussianCloud& cloud);
  /// Gives the file its name; all rows must have come.
  Result<void> finish();

 private:
  GaussianPlyWriter(std::filesystem::path path, AtomicFile file, uint64_t n_rows)
      : path_(std::move(path)), file_(std::move(file)), n_rows_(n_rows) {}

  std::filesystem::path path_;
  AtomicFile file_;
  uint64_t n_rows_, n_added_ = 0;
};

/// Writes binary little-endian float32 properties x y z nx ny nz f_dc_0..2 f_rest_0..3K-1
/// (channel-major) opacity scale_0..2 rot_0..3, aside and renamed. Refuses non-finite values,
/// naming the first rows (ErrorCode::Internal). A cloud with the mip filter gets the comment
/// "SplatRenderMode: mip". Error: ErrorCode::Output.
Result<void> write_gaussian_ply(const std::filesystem::path& path, const GaussianCloud& cloud);

/// Reads any Gaussian PLY: properties by name and declared type, ascii or binary little/big endian,
/// SH degree 0..4 (4 is cut to 3), missing normals or f_rest, extra elements and properties, CRLF
/// headers. An opacity of +-infinity (alpha exactly 0 or 1) becomes +-20, a log-scale of -infinity
/// -30; any other non-finite value is an error. Without f_dc, red green blue give the colour.
/// Errors: ErrorCode::Dataset naming the file and what is missing or the byte where it ends.
Result<GaussianCloud> read_gaussian_ply(const std::filesystem::path& path);

}  // namespace millrace
