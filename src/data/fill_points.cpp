// Empty cells of the training views, and a point for each.
#include "data/fill_points.h"

#include <algorithm>
#include <array>

#include "base/philox.h"

namespace millrace {
namespace {

constexpr double kFarthest = 8;  // times the view's median depth

struct CameraPoint {
  double x, y, z;
};

CameraPoint to_camera(const Camera& camera, const float* p) {
  const auto& m = camera.world_to_camera;
  return {m[0] * p[0] + m[1] * p[1] + m[2] * p[2] + m[3],
          m[4] * p[0] + m[5] * p[1] + m[6] * p[2] + m[7],
          m[8] * p[0] + m[9] * p[1] + m[10] * p[2] + m[11]};
}

std::array<float, 3> to_world(const Camera& camera, const CameraPoint& p) {
  const auto& m = camera.world_to_camera;
  const std::array<double, 3> q = {p.x - m[3], p.y - m[7], p.z - m[11]};
  std::array<float, 3> out;
  for (size_t i = 0; i < 3; ++i) {
    out[i] = static_cast<float>(m[i] * q[0] + m[4 + i] * q[1] + m[8 + i] * q[2]);
  }
  return out;
}

// The points of one view's empty cells, appended to `out` as world positions. Returns its cells.
uint64_t fill_view(const View& view, const PointCloud& points, uint64_t seed,
                   std::vector<float>& out) {
  const Camera& camera = view.camera;
  const double cell = static_cast<double>(std::max(camera.width, camera.height)) / kFillCells;
  const auto columns = static_cast<uint32_t>(std::max(1.0, camera.width / cell + 0.5));
  const auto rows = static_cast<uint32_t>(std::max(1.0, camera.height / cell + 0.5));
  std::vector<bool> taken(uint64_t{columns} * rows);
  std::vector<double> depths;
  for (uint64_t i = 0; i < points.count(); ++i) {
    const CameraPoint p = to_camera(camera, &points.positions[3 * i]);
    if (!(p.z > 0)) continue;
    const double u = camera.fx * p.x / p.z + camera.cx, v = camera.fy * p.y / p.z + camera.cy;
    if (!(u >= 0 && v >= 0 && u < camera.width && v < camera.height)) continue;
    const auto column = static_cast<uint32_t>(u / camera.width * columns);
    const auto row = static_cast<uint32_t>(v / camera.height * rows);
    taken[uint64_t{std::min(row, rows - 1)} * columns + std::min(column, columns - 1)] = true;
    depths.push_back(p.z);
  }
  if (depths.empty()) return 0;
  const auto middle = depths.begin() + static_cast<ptrdiff_t>(depths.size() / 2);
  std::nth_element(depths.begin(), middle, depths.end());
  const double median = *middle;
  for (uint32_t i = 0; i < taken.size(); ++i) {
    if (taken[i]) continue;
    const auto words = philox(seed, view.index, RandomPurpose::InitPoints, i, 1);
    const uint32_t row = i / columns;
    const double u = (i % columns + uniform_open(words[0])) / columns * camera.width;
    const double v = (row + uniform_open(words[1])) / rows * camera.height;
    const double s = uniform_open(words[2]);
    const double z = median / ((1 - s) + s / kFarthest);
    const auto world =
        to_world(camera, {(u - camera.cx) / camera.fx * z, (v - camera.cy) / camera.fy * z, z});
    out.insert(out.end(), world.begin(), world.end());
  }
  return taken.size();
}

}  // namespace

PointCloud draw_fill_points(const std::vector<View>& views, const PointCloud& points,
                            uint64_t n_most, uint64_t seed) {
  std::vector<float> all;
  uint64_t n_cells = 0;
  for (const View& view : views) {
    if (!view.held_out) n_cells += fill_view(view, points, seed, all);
  }
  const uint64_t available = all.size() / 3;
  const bool is_sparse = static_cast<double>(available) > kFillShare * static_cast<double>(n_cells);
  const uint64_t n = is_sparse ? std::min(available, n_most) : 0;
  PointCloud fill;
  constexpr uint8_t kGray = 128;
  fill.colors.assign(3 * n, kGray);
  for (uint64_t i = 0; i < n; ++i) {
    const float* from = &all[3 * (i * available / n)];
    fill.positions.insert(fill.positions.end(), from, from + 3);
  }
  return fill;
}

}  // namespace millrace
