// Models as SPZ (Niantic), versions 2 to 4 (docs/formats.md).
#pragma once

#include <filesystem>
#include <string>

#include "base/gaussian_cloud.h"
#include "base/result.h"
#include "formats/compress.h"

namespace millrace {

struct SpzOptions {
  int version = 3;  // 3: one gzip stream, which every reader takes; 4: zstd streams
  int sh_bits = 8;  // of the higher SH coefficients, 1 to 8; degree 1 gets one more
};

/// The bytes of the file. Every row must have a rotation (has_rotation()) and finite values.
ByteVector encode_spz(const GaussianCloud& cloud, const SpzOptions& options = {});
/// Written aside and renamed. Errors: Internal (what check_writable() refuses), Output.
Result<void> write_spz(const std::filesystem::path& path, const GaussianCloud& cloud,
                       const SpzOptions& options = {});

/// SH degree 4 is cut to 3. Error: ErrorCode::Dataset, opened by `what`, naming the byte or stream.
Result<GaussianCloud> decode_spz(ByteSpan bytes, const std::string& what);
Result<GaussianCloud> read_spz(const std::filesystem::path& path);

}  // namespace millrace
