// Slicing a bilateral grid and the way back, area by area: the pixels between four columns of
// cells. Along a row of an area the columns are two after one interpolation, and levels that no
// pixel of a vector reads are skipped. Formulas: src/kernels/grid.cpp.
#include "kernels/isa/grid_slice.h"

#include "kernels/grid_layout.h"
#include "kernels/isa/vector.h"
#include "kernels/ppisp_color.h"

namespace millrace::kernels::MILLRACE_ISA {
namespace {

constexpr float kLn2 = 0.693147180559945309f;
constexpr float kTopLevel = kGridLevels - 1;
constexpr float kLuma[3] = {0.299f, 0.587f, 0.114f};

struct Area {
  uint32_t column, row;  // of its near cells
  uint32_t begin_x, end_x, begin_y, end_y;
};

Area area_of(const GridArgs& args, uint32_t area) {
  const uint32_t column = area % kGridAreasAcross, row = area / kGridAreasAcross;
  return {column,
          row,
          area_begin(column, args.width),
          area_begin(column + 1, args.width),
          area_begin(row, args.height),
          area_begin(row + 1, args.height)};
}

/// The grid along a row of an area: the near column's value and the step to the far one.
template <int kChannels>
struct RowTable {
  float near[kGridLevels][kChannels], step[kGridLevels][kChannels];
};

template <int kChannels>
void fill(const GridArgs& args, const Area& area, float fy, RowTable<kChannels>* table) {
  for (uint32_t level = 0; level < kGridLevels; ++level) {
    for (uint32_t c = 0; c < kChannels; ++c) {
      const float* cell = args.grid + grid_index(c, level, area.row, area.column);
      const float near = cell[0] + fy * (cell[kGridColumns] - cell[0]);
      const float far = cell[1] + fy * (cell[kGridColumns + 1] - cell[1]);
      table->near[level][c] = near + args.offset[c];
      table->step[level][c] = far - near;
    }
  }
}

float row_share(const GridArgs& args, const Area& area, uint32_t y) {
  return static_cast<float>(area_offset(area.row, y, args.height)) /
         static_cast<float>(grid_span(args.height));
}

/// Some neighbouring pixels of a row.
struct Pixels {
  uint64_t first;  // index in a plane
  int n;           // up to kWidth; the rest repeats nothing and counts for nothing
  vf fx;           // share of the far column
};

vf load_some(const float* from, int n) {
  if (n == kWidth) return load(from);
  float lanes[kWidth] = {};
  for (int i = 0; i < n; ++i) lanes[i] = from[i];
  return load(lanes);
}
void store_some(float* to, vf v, int n) {
  if (n == kWidth) {
    store(to, v);
    return;
  }
  float lanes[kWidth];
  store(lanes, v);
  for (int i = 0; i < n; ++i) to[i] = lanes[i];
}

/// Calls visit(pixels) for the pixels of row `y`, kWidth at a time.
template <class Visit>
void for_each_pixels(const GridArgs& args, const Area& area, uint32_t y, const Visit& visit) {
  const float scale = 1.0f / static_cast<float>(grid_span(args.width));
  for (uint32_t x = area.begin_x; x < area.end_x; x += kWidth) {
    const uint32_t left = area.end_x - x;
    const int n = left < kWidth ? static_cast<int>(left) : kWidth;
    const auto offset = static_cast<float>(area_offset(area.column, x, args.width));
    const vf lanes = __builtin_convertvector(first_lanes(), vf);
    visit(Pixels{uint64_t{y} * args.width + x, n,
                 (lanes * static_cast<float>(kGridAreasAcross) + offset) * scale});
  }
}

/// Where on the levels' axis a colour lies.
struct Guide {
  vf level;
  vi inside;  // whether it moves with the colour
};
Guide guide_of(const vf* rgb) {
  const vf luma = rgb[0] * kLuma[0] + rgb[1] * kLuma[1] + rgb[2] * kLuma[2];
  const vf zero = {}, one = broadcast(1.0f);
  return {min(max(luma, zero), one) * kTopLevel, (luma > zero) & (luma < one)};
}

template <int kChannels>
void slice(const RowTable<kChannels>& table, vf level, vf fx, vf* sliced) {
  for (int c = 0; c < kChannels; ++c) sliced[c] = vf{};
  for (uint32_t z = 0; z < kGridLevels; ++z) {
    const vf weight = max(1.0f - abs(level - static_cast<float>(z)), vf{});
    if (!any(weight > 0.0f)) continue;
    for (int c = 0; c < kChannels; ++c) {
      sliced[c] += weight * (table.near[z][c] + fx * table.step[z][c]);
    }
  }
}

/// An affine colour transform, rows of [3,4].
struct Affine {
  static constexpr int kChannels = 12;

  static void forward(const vf* s, const vf* rgb, vf* out) {
    for (int r = 0; r < 3; ++r) {
      const vf value =
          s[4 * r] * rgb[0] + s[4 * r + 1] * rgb[1] + s[4 * r + 2] * rgb[2] + s[4 * r + 3];
      out[r] = finite(value) ? value : broadcast(0.5f);
    }
  }
  static void backward(const vf* s, const vf* rgb, const vf* d_out, vf* d_s, vf* d_rgb) {
    for (int k = 0; k < 3; ++k) d_rgb[k] = vf{};
    for (int r = 0; r < 3; ++r) {
      const vf value =
          s[4 * r] * rgb[0] + s[4 * r + 1] * rgb[1] + s[4 * r + 2] * rgb[2] + s[4 * r + 3];
      const vf d = finite(value) ? d_out[r] : vf{};
      for (int k = 0; k < 3; ++k) {
        d_s[4 * r + k] = d * rgb[k];
        d_rgb[k] += d * s[4 * r + k];
      }
      d_s[4 * r + 3] = d;
    }
  }
};

/// Exposure, then PPISP's colour correction, then a clamp to [0,1].
struct ExposureChroma {
  static constexpr int kChannels = 9;

  static vf gain(const vf* s) {
    const vf limit = broadcast(kGridMaxExposure);
    return exp(min(max(s[0], -limit), limit) * kLn2);
  }
  static void forward(const vf* s, const vf* rgb, vf* out) {
    const vf g = gain(s);
    vf lit[3];
    for (int k = 0; k < 3; ++k) lit[k] = max(rgb[k], vf{}) * g;
    apply_color(color_map(s + 1), lit, out);
    for (int k = 0; k < 3; ++k) {
      const vf clamped = min(max(out[k], vf{}), broadcast(1.0f));
      out[k] = finite(out[k]) ? clamped : broadcast(0.5f);
    }
  }
  static void backward(const vf* s, const vf* rgb, const vf* d_out, vf* d_s, vf* d_rgb) {
    const vf g = gain(s), zero = {}, one = broadcast(1.0f);
    vf lit[3], out[3], d[3], d_lit[3], d_map[kColorMapParts];
    for (int k = 0; k < 3; ++k) lit[k] = max(rgb[k], zero) * g;
    const ColorMap<vf> map = color_map(s + 1);
    apply_color(map, lit, out);
    for (int k = 0; k < 3; ++k) {
      // Beyond the clamp only what leads back inside.
      const vi passes =
          ((out[k] >= zero) | (d_out[k] < zero)) & ((out[k] <= one) | (d_out[k] > zero));
      d[k] = (passes & finite(out[k])) ? d_out[k] : zero;
    }
    apply_color_backward(map, lit, d, d_lit, d_map);
    color_map_backward(map, d_map, d_s + 1);
    d_s[0] = (d_lit[0] * lit[0] + d_lit[1] * lit[1] + d_lit[2] * lit[2]) * kLn2;
    d_s[0] = abs(s[0]) <= kGridMaxExposure ? d_s[0] : zero;
    for (int k = 0; k < 3; ++k) d_rgb[k] = rgb[k] >= zero ? d_lit[k] * g : zero;
  }
};

template <class Mode>
void forward_area(const GridArgs& args, uint32_t index) {
  const Area area = area_of(args, index);
  if (area.begin_x >= area.end_x) return;
  const uint64_t plane = uint64_t{args.width} * args.height;
  for (uint32_t y = area.begin_y; y < area.end_y; ++y) {
    RowTable<Mode::kChannels> table;
    fill(args, area, row_share(args, area, y), &table);
    for_each_pixels(args, area, y, [&](const Pixels& pixels) {
      vf rgb[3], out[3], sliced[Mode::kChannels];
      for (int k = 0; k < 3; ++k)
        rgb[k] = load_some(args.image + k * plane + pixels.first, pixels.n);
      slice(table, guide_of(rgb).level, pixels.fx, sliced);
      Mode::forward(sliced, rgb, out);
      for (int k = 0; k < 3; ++k)
        store_some(args.shown + k * plane + pixels.first, out[k], pixels.n);
    });
  }
}

template <class Mode>
void backward_area(const GridArgs& args, uint32_t index) {
  constexpr int kChannels = Mode::kChannels;
  const Area area = area_of(args, index);
  const uint64_t plane = uint64_t{args.width} * args.height;
  vf corners[4][kGridLevels][kChannels] = {};
  for (uint32_t y = area.begin_y; y < area.end_y && area.begin_x < area.end_x; ++y) {
    const float fy = row_share(args, area, y);
    RowTable<kChannels> table;
    fill(args, area, fy, &table);
    vf columns[2][kGridLevels][kChannels];
    uint32_t touched = 0;
    for_each_pixels(args, area, y, [&](const Pixels& pixels) {
      vf rgb[3], d_out[3], d_rgb[3], sliced[kChannels], d_sliced[kChannels];
      for (int k = 0; k < 3; ++k) {
        rgb[k] = load_some(args.image + k * plane + pixels.first, pixels.n);
        d_out[k] = load_some(args.d_image + k * plane + pixels.first, pixels.n);
      }
      const Guide guide = guide_of(rgb);
      slice(table, guide.level, pixels.fx, sliced);
      Mode::backward(sliced, rgb, d_out, d_sliced, d_rgb);
      vf d_level = {};
      for (uint32_t z = 0; z < kGridLevels; ++z) {
        const vf above = guide.level - static_cast<float>(z);
        const vf weight = max(1.0f - abs(above), vf{});
        if (!any(abs(above) <= 1.0f)) continue;
        if (!(touched >> z & 1)) {
          touched |= 1u << z;
          for (auto& column : columns) {
            for (vf& channel : column[z]) channel = vf{};
          }
        }
        vf along = {};
        const vf far = weight * pixels.fx, near = weight - far;
        for (int c = 0; c < kChannels; ++c) {
          along += d_sliced[c] * (table.near[z][c] + pixels.fx * table.step[z][c]);
          columns[0][z][c] += near * d_sliced[c];
          columns[1][z][c] += far * d_sliced[c];
        }
        // The weight falls above its level and rises below it.
        const vi falls = (above >= 0.0f) & (above < 1.0f),
                 rises = (above >= -1.0f) & (above < 0.0f);
        d_level += rises ? along : falls ? -along : vf{};
      }
      d_level = guide.inside ? d_level * kTopLevel : vf{};
      for (int k = 0; k < 3; ++k) {
        store_some(args.d_image + k * plane + pixels.first, d_rgb[k] + d_level * kLuma[k],
                   pixels.n);
      }
    });
    for (uint32_t z = 0; z < kGridLevels; ++z) {
      if (!(touched >> z & 1)) continue;
      for (int c = 0; c < kChannels; ++c) {
        for (int i = 0; i < 2; ++i) {
          const vf far = columns[i][z][c] * fy;
          corners[i][z][c] += columns[i][z][c] - far;
          corners[2 + i][z][c] += far;
        }
      }
    }
  }
  float* partial = args.partials + uint64_t{index} * kGridPartialFloats;
  for (uint32_t corner = 0; corner < 4; ++corner) {
    for (uint32_t z = 0; z < kGridLevels; ++z) {
      for (int c = 0; c < kChannels; ++c) {
        partial[partial_index(corner, z, c)] = sum(corners[corner][z][c]);
      }
    }
  }
}

}  // namespace

void grid_forward_area(const GridArgs& args, uint32_t area) {
  if (args.channels == Affine::kChannels) return forward_area<Affine>(args, area);
  forward_area<ExposureChroma>(args, area);
}

void grid_backward_area(const GridArgs& args, uint32_t area) {
  if (args.channels == Affine::kChannels) return backward_area<Affine>(args, area);
  backward_area<ExposureChroma>(args, area);
}

}  // namespace millrace::kernels::MILLRACE_ISA
