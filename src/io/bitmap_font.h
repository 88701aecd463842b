// A 5 x 7 bitmap font for captions on contact sheets.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/image.h"

namespace millrace {

constexpr uint32_t kGlyphWidth = 5, kGlyphHeight = 7;  // pixels at scale 1
constexpr uint32_t kGlyphAdvance = 6;                  // from one glyph to the next at scale 1

/// `text` (UTF-8) with each character outside ASCII 32..126 replaced by one '?'.
std::string printable_ascii(std::string_view text);

/// Draws `text` with its top left corner at (x, y) into an RGB image, `scale` pixels per dot. What
/// falls outside the image is left out.
void draw_text(Image8& image, uint32_t x, uint32_t y, std::string_view text, uint32_t scale,
               std::array<uint8_t, 3> color);

/// `text` cut at its end (with "...") so that it is at most `max_width` pixels wide at `scale`.
std::string fit_text(std::string_view text, uint32_t max_width, uint32_t scale);

}  // namespace millrace
