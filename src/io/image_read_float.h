// Image files as floats, keeping the precision of 16-bit PNG.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "io/image_write.h"

namespace millrace {

/// Any image file as floats 0..1; 16-bit PNG at full precision, everything else through read_image.
/// Alpha is composited over black. Error: ErrorCode::Dataset naming the file.
Result<ImageF> read_image_float(const std::filesystem::path& path);

}  // namespace millrace
