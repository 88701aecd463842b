// Float images to PNG, and contact sheets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/image.h"

namespace millrace {

/// A linear array of floats [height, width, 3], 0..1 (display-referred as in the photographs).
struct ImageF {
  uint32_t width = 0, height = 0;
  std::vector<float> pixels;
};

/// Value / 255; alpha, where there is any, is composited over black.
ImageF to_float(const Image8& image);
/// Clamped to [0,1] and rounded; NaN becomes 0.
Image8 to_8bit(const ImageF& image);

/// PNG with 8 or 16 bits per channel, written aside and renamed. Error: ErrorCode::Output.
Result<void> write_png8(const std::filesystem::path& path, const Image8& image);
Result<void> write_png16(const std::filesystem::path& path, const ImageF& image);

/// One row of a contact sheet: the photograph, the render, and a caption drawn under them.
struct ContactRow {
  std::string caption;
  Image8 photo, render;
};

/// Pairs side by side (photo | render | absolute error x4), several pairs in a grid no wider than
/// `max_width` pixels, each with its caption, as PNG. Tiles are scaled down to fit, never up.
/// Errors: ErrorCode::Internal (no rows, or a photograph and render of different sizes),
/// ErrorCode::Output.
Result<void> write_contact_sheet(const std::filesystem::path& path,
                                 const std::vector<ContactRow>& rows, uint32_t max_width = 1920);

}  // namespace millrace
