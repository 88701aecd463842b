// Contact sheets: photograph, render and error side by side with captions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "io/bitmap_font.h"
#include "io/image_write.h"

namespace millrace {
namespace {

using Color = std::array<uint8_t, 3>;

constexpr Color kBackground = {24, 25, 28};
constexpr Color kCaptionColor = {222, 224, 228};
constexpr Color kHeadingColor = {140, 145, 155};
constexpr uint32_t kMargin = 16;     // pixels around the sheet and between groups
constexpr uint32_t kTileGap = 4;     // between the three tiles of a group
constexpr uint32_t kTextGap = 6;     // above and below text
constexpr uint32_t kLeastTile = 24;  // pixels; a sheet narrower than three such tiles is widened
constexpr int kErrorGain = 4;
constexpr std::array<const char*, 3> kHeadings = {"photo", "render", "error x4"};

Image8 rgb_of(const Image8& image) {
  return image.channels == 3 ? image : to_8bit(to_float(image));
}

Image8 error_image(const Image8& photo, const Image8& render) {
  Image8 out{photo.width, photo.height, 3, {}};
  out.pixels.resize(photo.pixels.size());
  for (size_t i = 0; i < out.pixels.size(); ++i) {
    const int difference = std::abs(static_cast<int>(photo.pixels[i]) - render.pixels[i]);
    out.pixels[i] = static_cast<uint8_t>(std::min(kErrorGain * difference, 255));
  }
  return out;
}

void paste(Image8& sheet, const Image8& tile, uint32_t x, uint32_t y) {
  for (uint32_t row = 0; row < tile.height; ++row) {
    std::memcpy(&sheet.pixels[(static_cast<size_t>(y + row) * sheet.width + x) * 3],
                &tile.pixels[static_cast<size_t>(row) * tile.width * 3],
                static_cast<size_t>(tile.width) * 3);
  }
}

// Where everything stands. A group is the three tiles of one row and its caption.
struct Layout {
  uint32_t n_columns = 1;   // groups side by side
  uint32_t tile_width = 0;  // room for one tile; narrower tiles are centred in it
  uint32_t text_scale = 1;
  std::vector<uint32_t> line_heights;  // tallest tile of each line of groups
  uint32_t width = 0, height = 0;

  uint32_t group_width() const { return 3 * tile_width + 2 * kTileGap; }
  uint32_t text_height() const { return kGlyphHeight * text_scale; }
  uint32_t group_x(uint32_t column) const { return kMargin + column * (group_width() + kMargin); }
};

// The size of a tile: the image's, reduced to fit the room's width.
ImageSize tile_size(const Image8& image, uint32_t tile_width) {
  if (image.width <= tile_width) return {image.width, image.height};
  const uint64_t height =
      (static_cast<uint64_t>(image.height) * tile_width + image.width / 2) / image.width;
  return {tile_width, std::max<uint32_t>(1, static_cast<uint32_t>(height))};
}

uint32_t columns_for(size_t n_rows) { return n_rows <= 3 ? 1 : n_rows <= 16 ? 2 : 3; }

Layout lay_out(const std::vector<ContactRow>& rows, uint32_t max_width) {
  Layout layout;
  layout.n_columns = columns_for(rows.size());
  const auto room = [&](uint32_t n_columns) {
    const uint32_t gaps = kMargin * (n_columns + 1) + 2 * kTileGap * n_columns;
    return std::max(kLeastTile, (std::max(max_width, gaps) - gaps) / (3 * n_columns));
  };
  uint32_t widest = 1;
  for (const ContactRow& row : rows) widest = std::max(widest, row.photo.width);
  // Small images leave room for more groups in a line.
  const auto n_rows = static_cast<uint32_t>(rows.size());
  while (layout.n_columns < n_rows && room(layout.n_columns + 1) >= widest) ++layout.n_columns;
  layout.n_columns = std::min(layout.n_columns, n_rows);
  while (layout.n_columns > 1 && room(layout.n_columns) <= kLeastTile) --layout.n_columns;
  layout.tile_width = std::min(room(layout.n_columns), std::max(widest, kLeastTile));
  layout.text_scale = layout.tile_width >= 160 ? 2 : 1;

  layout.width = layout.group_x(layout.n_columns);
  layout.height = kMargin + layout.text_height() + kTextGap;  // the headings
  for (uint32_t i = 0; i < n_rows; ++i) {
    if (i % layout.n_columns == 0) layout.line_heights.push_back(0);
    uint32_t& height = layout.line_heights.back();
    height = std::max(height, tile_size(rows[i].photo, layout.tile_width).height);
  }
  for (const uint32_t height : layout.line_heights) {
    layout.height += height + kTextGap + layout.text_height() + kMargin;
  }
  return layout;
}

void draw_group(Image8& sheet, const Layout& layout, const ContactRow& row, uint32_t x, uint32_t y,
                uint32_t line_height) {
  const Image8 photo = rgb_of(row.photo), render = rgb_of(row.render);
  const ImageSize size = tile_size(photo, layout.tile_width);
  const std::array<Image8, 3> images = {photo, render, error_image(photo, render)};
  for (uint32_t i = 0; i < 3; ++i) {
    const bool fits = images[i].width == size.width;
    const Image8 tile = fits ? images[i] : resize_image(images[i], size.width, size.height);
    const uint32_t tile_x = x + i * (layout.tile_width + kTileGap);
    paste(sheet, tile, tile_x + (layout.tile_width - size.width) / 2, y);
  }
  draw_text(sheet, x, y + line_height + kTextGap,
            fit_text(row.caption, layout.group_width(), layout.text_scale), layout.text_scale,
            kCaptionColor);
}

}  // namespace

Result<void> write_contact_sheet(const std::filesystem::path& path,
                                 const std::vector<ContactRow>& rows, uint32_t max_width) {
  if (rows.empty()) {
    return Error{ErrorCode::Internal,
                 fmt::format("cannot write {}: a contact sheet needs an image", path.string())};
  }
  for (const ContactRow& row : rows) {
    if (row.photo.width == row.render.width && row.photo.height == row.render.height &&
        row.photo.width > 0 && row.photo.height > 0) {
      continue;
    }
    return Error{ErrorCode::Internal,
                 fmt::format("cannot write {}: the render of {} is {} x {}, its photograph {} x {}",
                             path.string(), row.caption, row.render.width, row.render.height,
                             row.photo.width, row.photo.height)};
  }
  const Layout layout = lay_out(rows, max_width);
  Image8 sheet{layout.width, layout.height, 3, {}};
  sheet.pixels.resize(static_cast<size_t>(sheet.width) * sheet.height * 3);
  for (size_t i = 0; i < sheet.pixels.size(); ++i) sheet.pixels[i] = kBackground[i % 3];

  for (uint32_t column = 0; column < layout.n_columns; ++column) {
    for (uint32_t i = 0; i < 3; ++i) {
      draw_text(sheet, layout.group_x(column) + i * (layout.tile_width + kTileGap), kMargin,
                fit_text(kHeadings[i], layout.tile_width, layout.text_scale), layout.text_scale,
                kHeadingColor);
    }
  }
  uint32_t y = kMargin + layout.text_height() + kTextGap;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    const uint32_t column = i % layout.n_columns;
    const uint32_t line_height = layout.line_heights[i / layout.n_columns];
    draw_group(sheet, layout, rows[i], layout.group_x(column), y, line_height);
    if (column + 1 == layout.n_columns) {
      y += line_height + kTextGap + layout.text_height() + kMargin;
    }
  }
  return write_png8(path, sheet);
}

}  // namespace millrace
