// Writing Gaussians as PLY, and reading them from any PLY.
#include "io/ply.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "io/cloud_check.h"
#include "io/ply_body.h"
#include "io/ply_header.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "PLY is written as little endian");

constexpr double kShC0 = 0.28209479177387814;  // the constant spherical harmonic, 1 / (2 sqrt(pi))
constexpr float kOpaqueLogit = 20;             // sigmoid(20) rounds to 1 in float32
constexpr float kFlatLogScale = -30;  // exp(-30) is far below float32's resolution of any scene
constexpr std::string_view kMipComment = "SplatRenderMode: mip";  // as Brush writes it

// ---- writing ----

std::vector<std::string> property_names(size_t n_rest) {
  std::vector<std::string> names = {"x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"};
  for (size_t i = 0; i < n_rest; ++i) names.push_back(fmt::format("f_rest_{}", i));
  names.insert(names.end(),
               {"opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"});
  return names;
}

// ---- reading ----

Result<const PlyElement*> vertex_of(const PlyHeader& header, const std::string& file) {
  const PlyElement* vertex = header.find("vertex");
  if (vertex == nullptr) {
    return Error{ErrorCode::Dataset, fmt::format("{} has no element \"vertex\"", file)};
  }
  return vertex;
}

// The column of a property that may be absent (-1) and is not a list.
int column_of(const PlyElement& vertex, const std::string& name) {
  const int column = vertex.find(name);
  return column >= 0 && !vertex.properties[static_cast<size_t>(column)].is_list ? column : -1;
}

// Columns of `names`; those that are absent are appended to `missing`.
template <size_t kWidth>
std::array<size_t, kWidth> columns_of(const PlyElement& vertex,
                                      const std::array<const char*, kWidth>& names,
                                      std::vector<std::string>& missing) {
  std::array<size_t, kWidth> columns = {};
  for (size_t i = 0; i < kWidth; ++i) {
    const int column = column_of(vertex, names[i]);
    if (column < 0) missing.emplace_back(names[i]);
    columns[i] = column < 0 ? 0 : static_cast<size_t>(column);
  }
  return columns;
}

// Three colour columns and how to bring their values to 0..255.
struct ColorColumns {
  std::array<size_t, 3> columns = {};
  PlyType type = PlyType::Uint8;

  // Floats say 0..1 or 0..255 only by their values, hence `largest` over the file.
  double factor(double largest) const {
    if (type == PlyType::Uint16 || type == PlyType::Int16) return 255.0 / 65535.0;
    const bool is_float = type == PlyType::Float32 || type == PlyType::Float64;
    return is_float && largest <= 1.0 ? 255.0 : 1.0;
  }
};

bool find_colors(const PlyElement& vertex, ColorColumns& colors) {
  constexpr std::array<std::array<const char*, 3>, 2> kNames = {
      {{"red", "green", "blue"}, {"r", "g", "b"}}};
  for (const auto& names : kNames) {
    std::vector<std::string> missing;
    colors.columns = columns_of(vertex, names, missing);
    if (!missing.empty()) continue;
    colors.type = vertex.properties[colors.columns[0]].type;
    return true;
  }
  return false;
}

// How many f_rest properties there are, with their columns in order; or why they make no SH degree.
Result<std::vector<size_t>> rest_columns(const PlyElement& vertex, const std::string& file) {
  std::vector<size_t> columns;
  while (true) {
    const int column = column_of(vertex, fmt::format("f_rest_{}", columns.size()));
    if (column < 0) break;
    columns.push_back(static_cast<size_t>(column));
  }
  const auto n_named = std::count_if(
      vertex.properties.begin(), vertex.properties.end(),
      [](const PlyProperty& property) { return property.name.rfind("f_rest_", 0) == 0; });
  constexpr std::array<size_t, 5> kCounts = {0, 9, 24, 45, 72};
  const bool known = std::find(kCounts.begin(), kCounts.end(), columns.size()) != kCounts.end();
  if (!known || static_cast<size_t>(n_named) != columns.size()) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{} has {} properties f_rest_*, {} of them numbered from 0 without a gap; "
                    "SH degrees 0 to 4 have 0, 9, 24, 45 or 72",
                    file, n_named, columns.size())};
  }
  return columns;
}

// Where each float of a Gaussian stands in a row of the file.
struct GaussianColumns {
  std::array<size_t, 3> mean, scale, dc;
  std::array<size_t, 4> rotation;
  size_t opacity = 0;
  std::vector<size_t> rest;  // channel-major, n_channel per channel
  size_t n_channel = 0;
  int sh_degree = 0;
  bool dc_from_color = false;
  ColorColumns colors;
};

Result<GaussianColumns> find_gaussian_columns(const PlyElement& vertex, const std::string& file) {
  if (vertex.find("packed_position") >= 0) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{} is a compressed PLY (it has packed_position), which is not read "
                             "here; `millrace convert` makes a plain one of it",
                             file)};
  }
  GaussianColumns columns;
  std::vector<std::string> missing;
  columns.mean = columns_of<3>(vertex, {"x", "y", "z"}, missing);
  columns.scale = columns_of<3>(vertex, {"scale_0", "scale_1", "scale_2"}, missing);
  columns.rotation = columns_of<4>(vertex, {"rot_0", "rot_1", "rot_2", "rot_3"}, missing);
  columns.opacity = columns_of<1>(vertex, {"opacity"}, missing)[0];
  std::vector<std::string> missing_dc;
  columns.dc = columns_of<3>(vertex, {"f_dc_0", "f_dc_1", "f_dc_2"}, missing_dc);
  columns.dc_from_color = !missing_dc.empty() && find_colors(vertex, columns.colors);
  if (!columns.dc_from_color) missing.insert(missing.end(), missing_dc.begin(), missing_dc.end());
  if (!missing.empty()) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{} is not a Gaussian PLY: element \"vertex\" lacks {}{}", file,
                    fmt::join(missing, ", "),
                    missing.front() == "x" ? "" : "; it looks like a point cloud or mesh")};
  }
  MILLRACE_ASSIGN(columns.rest, rest_columns(vertex, file));
  columns.n_channel = columns.rest.size() / 3;
  while (sh_rest_count(columns.sh_degree) < static_cast<int>(columns.n_channel)) {
    ++columns.sh_degree;
  }
  columns.sh_degree = std::min(columns.sh_degree, 3);
  return columns;
}

// Appends one row of the file to the cloud.
void append_gaussian(const GaussianColumns& columns, std::span<const double> values,
                     GaussianCloud& cloud) {
  const auto value = [&](size_t column) { return static_cast<float>(values[column]); };
  for (const size_t column : columns.mean) cloud.means.push_back(value(column));
  for (const size_t column : columns.scale) {
    const float scale = value(column);
    cloud.log_scales.push_back(std::isinf(scale) && scale < 0 ? kFlatLogScale : scale);
  }
  for (const size_t column : columns.rotation) cloud.rotations.push_back(value(column));
  const float opacity = value(columns.opacity);
  cloud.opacities.push_back(std::isinf(opacity) ? std::copysign(kOpaqueLogit, opacity) : opacity);
  for (const size_t column : columns.dc_from_color ? columns.colors.columns : columns.dc) {
    cloud.sh0.push_back(value(column));
  }
  const size_t n_kept = static_cast<size_t>(sh_rest_count(columns.sh_degree));
  for (size_t k = 0; k < n_kept; ++k) {
    for (size_t channel = 0; channel < 3; ++channel) {
      cloud.sh_rest.push_back(value(columns.rest[channel * columns.n_channel + k]));
    }
  }
}

}  // namespace

Result<GaussianPlyWriter> GaussianPlyWriter::create(const fs::path& path, uint64_t n_rows,
                                                    int sh_degree, bool mip_filter) {
  const std::vector<std::string> names =
      property_names(3 * static_cast<size_t>(sh_rest_count(sh_degree)));
  std::string header = "ply\nformat binary_little_endian 1.0\n";
  if (mip_filter) header += fmt::format("comment {}\n", kMipComment);
  header += fmt::format("element vertex {}\n", n_rows);
  for (const std::string& name : names) header += fmt::format("property float {}\n", name);
  header += "end_header\n";
  MILLRACE_ASSIGN(AtomicFile file, AtomicFile::create(path));
  MILLRACE_TRY(file.write(std::as_bytes(std::span(header))));
  return GaussianPlyWriter(path, std::move(file), n_rows);
}

Result<void> GaussianPlyWriter::add(const GaussianCloud& cloud) {
  MILLRACE_TRY(check_writable(cloud, path_));
  const size_t n_channel = static_cast<size_t>(sh_rest_count(cloud.sh_degree));
  constexpr size_t kRowsAtOnce = 4096;
  std::vector<float> rows;
  for (size_t i = 0; i < cloud.count(); ++i) {
    const auto append = [&](const std::vector<float>& from, size_t width) {
      rows.insert(rows.end(), &from[width * i], &from[width * i] + width);
    };
    append(cloud.means, 3);
    rows.insert(rows.end(), 3, 0.0f);
    append(cloud.sh0, 3);
    for (size_t channel = 0; channel < 3; ++channel) {
      for (size_t k = 0; k < n_channel; ++k) {
        rows.push_back(cloud.sh_rest[(i * n_channel + k) * 3 + channel]);
      }
    }
    append(cloud.opacities, 1);
    append(cloud.log_scales, 3);
    append(cloud.rotations, 4);
    if ((i + 1) % kRowsAtOnce != 0 && i + 1 < cloud.count()) continue;
    MILLRACE_TRY(file_.write(std::as_bytes(std::span(rows))));
    rows.clear();
  }
  n_added_ += cloud.count();
  return {};
}

Result<void> GaussianPlyWriter::finish() {
  if (n_added_ != n_rows_) {
    return Error{ErrorCode::Internal, fmt::format("cannot write {}: {} Gaussians came, not {}",
                                                  path_.string(), n_added_, n_rows_)};
  }
  return file_.commit();
}

Result<void> write_gaussian_ply(const fs::path& path, const GaussianCloud& cloud) {
  MILLRACE_TRY(check_writable(cloud, path));
  MILLRACE_ASSIGN(
      GaussianPlyWriter writer,
      GaussianPlyWriter::create(path, cloud.count(), cloud.sh_degree, cloud.mip_filter));
  MILLRACE_TRY(writer.add(cloud));
  return writer.finish();
}

Result<GaussianCloud> read_gaussian_ply(const fs::path& path) {
  const std::string file = path.string();
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  MILLRACE_ASSIGN(const PlyHeader header, parse_ply_header(bytes, file));
  MILLRACE_ASSIGN(const PlyElement* vertex, vertex_of(header, file));
  MILLRACE_ASSIGN(const GaussianColumns columns, find_gaussian_columns(*vertex, file));
  MILLRACE_TRY(check_ply_body_size(bytes, header, file));

  GaussianCloud cloud;
  cloud.sh_degree = columns.sh_degree;
  cloud.mip_filter = std::ranges::find(header.comments, kMipComment) != header.comments.end();
  const size_t n = static_cast<size_t>(vertex->count);
  cloud.means.reserve(3 * n);
  cloud.log_scales.reserve(3 * n);
  cloud.rotations.reserve(4 * n);
  cloud.opacities.reserve(n);
  cloud.sh0.reserve(3 * n);
  cloud.sh_rest.reserve(3 * n * static_cast<size_t>(sh_rest_count(columns.sh_degree)));
  double largest_color = 0;
  MILLRACE_TRY(
      read_ply_rows(bytes, header, *vertex, file, [&](uint64_t, std::span<const double> values) {
        append_gaussian(columns, values, cloud);
        for (const size_t column : columns.colors.columns) {
          largest_color = std::max(largest_color, values[column]);
        }
      }));
  if (columns.dc_from_color) {
    const double factor = columns.colors.factor(largest_color) / 255.0;
    for (float& value : cloud.sh0) value = static_cast<float>((value * factor - 0.5) / kShC0);
  }
  MILLRACE_TRY(check_finite_rows(cloud, file));
  return cloud;
}

}  // namespace millrace
