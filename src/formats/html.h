// Models as one HTML page that shows them: the viewer, its cameras and the model (docs/formats.md).
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "base/gaussian_cloud.h"
#include "base/result.h"
#include "formats/compress.h"
#include "io/cameras_json.h"

namespace millrace {

struct HtmlOptions {
  std::string title = "Millrace";
  std::vector<NamedCamera> cameras;  // the first is where the page opens; none: a ring around it
  std::array<float, 3> background = {0, 0, 0};
};

/// A page without any other file or address; the model is SPZ 3 in base64. Every row must have a
/// rotation. Written aside and renamed. Errors: Internal (what check_writable() refuses), Output.
Result<void> write_html(const std::filesystem::path& path, const GaussianCloud& cloud,
                        const HtmlOptions& options = {});
/// The model of such a page. Error: ErrorCode::Dataset naming the file and byte.
Result<GaussianCloud> read_html(const std::filesystem::path& path);

/// Base64 of RFC 4648 with padding, and back. Error: ErrorCode::Dataset, opened by `what`.
std::string base64(ByteSpan bytes);
Result<ByteVector> unbase64(std::string_view text, const std::string& what);

}  // namespace millrace
