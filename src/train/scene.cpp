// From a dataset to camera records and initial Gaussians.
#include "train/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/fill_points.h"
#include "data/neighbours.h"

namespace millrace {

CameraRecord make_camera_record(const Camera& camera, double near_plane) {
  CameraRecord record = {};
  const auto& m = camera.world_to_camera;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) record.rotation[3 * i + j] = static_cast<float>(m[4 * i + j]);
    record.translation[i] = static_cast<float>(m[4 * i + 3]);
  }
  const std::array<double, 3> centre = camera_centre(camera);
  for (int i = 0; i < 3; ++i) record.centre[i] = static_cast<float>(centre[i]);
  record.fx = static_cast<float>(camera.fx);
  record.fy = static_cast<float>(camera.fy);
  record.cx = static_cast<float>(camera.cx);
  record.cy = static_cast<float>(camera.cy);
  record.near_plane = static_cast<float>(near_plane);
  record.width = camera.width;
  record.height = camera.height;
  return record;
}

FrameSize frame_size(const Camera& camera) { return {camera.width, camera.height}; }

void begin_strategy(TrainState& state, const std::vector<View>& train_views,
                    const SceneScale& scale) {
  if (!state.model.statistics.defined()) return;
  std::vector<std::array<double, 3>> centres;
  std::array<double, 3> mean = {};
  for (const View& view : train_views) {
    const CameraRecord record = make_camera_record(view.camera, kNearPlane);
    centres.push_back({record.centre[0], record.centre[1], record.centre[2]});
    for (size_t k = 0; k < 3; ++k) {
      mean[k] += centres.back()[k] / static_cast<double>(train_views.size());
    }
  }
  double radius = 0, distance = 0;
  for (const auto& c : centres) {
    radius = std::max(radius, std::hypot(c[0] - mean[0], c[1] - mean[1], c[2] - mean[2]));
  }
  distance = std::hypot(mean[0], mean[1], mean[2]);
  constexpr double kLeast = 32 * 1.1920929e-7;
  const bool has_hull = centres.size() >= 2 && radius > kLeast * std::max(1.0, distance);
  const float centre[3] = {static_cast<float>(mean[0]), static_cast<float>(mean[1]),
                           static_cast<float>(mean[2])};
  mrnf_begin(state.model, state.workspace.rows.row_ids, centre,
             has_hull ? static_cast<float>(radius) : 0.0f, static_cast<float>(scale.normaliser));
}

namespace {

// Of `available` points, the one that Gaussian i of n begins at.
uint64_t start_point(uint64_t i, uint64_t available, uint64_t n) { return i * available / n; }

std::vector<float> start_positions(const Dataset& dataset, uint64_t n) {
  std::vector<float> positions(3 * n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t from = start_point(i, dataset.points.count(), n);
    for (uint64_t k = 0; k < 3; ++k) {
      positions[3 * i + k] = dataset.points.positions[3 * from + k];
    }
  }
  return positions;
}

}  // namespace

std::vector<float> initial_distances(const Dataset& dataset, const TrainOptions& options) {
  const uint64_t n = std::min<uint64_t>(dataset.points.count(), options.max_cap);
  return mean_square_distance_to_3_nearest(start_positions(dataset, n));
}

GaussianCloud initial_cloud(const Dataset& dataset, const TrainOptions& options, std::string* note,
                            const std::vector<float>& distances) {
  constexpr float kSh0 = 0.28209479177387814f;
  const uint64_t available = dataset.points.count();
  const uint64_t n = std::min<uint64_t>(available, options.max_cap);
  if (n < available && note) {
    *note = fmt::format("starting from {} of {} points (--max-cap)", n, available);
  }
  std::vector<float> positions = start_positions(dataset, n);
  GaussianCloud cloud;
  cloud.sh_degree = static_cast<int>(options.sh_degree);
  cloud.mip_filter = options.mip_filter;
  cloud.sh0.resize(3 * n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t from = start_point(i, available, n);
    for (uint64_t k = 0; k < 3; ++k) {
      cloud.sh0[3 * i + k] =
          (static_cast<float>(dataset.points.colors[3 * from + k]) / 255.0f - 0.5f) / kSh0;
    }
  }
  const std::vector<float> distance2 =
      distances.size() == n ? distances : mean_square_distance_to_3_nearest(positions);
  const auto opacity =
      static_cast<float>(std::log(options.init_opacity / (1 - options.init_opacity)));
  cloud.opacities.assign(n, opacity);
  cloud.rotations.assign(4 * n, 0.0f);
  cloud.log_scales.resize(3 * n);
  for (uint64_t i = 0; i < n; ++i) {
    cloud.rotations[4 * i] = 1.0f;
    const double scale = options.init_scaling * std::sqrt(static_cast<double>(distance2[i]));
    for (uint64_t k = 0; k < 3; ++k)
      cloud.log_scales[3 * i + k] = static_cast<float>(std::log(scale));
  }
  cloud.sh_rest.assign(n * 3 * static_cast<uint64_t>(sh_rest_count(cloud.sh_degree)), 0.0f);
  cloud.means = std::move(positions);
  return cloud;
}

std::string add_fill_points(Dataset& dataset, const TrainOptions& options) {
  PointCloud& points = dataset.points;
  if (!options.init_fill || dataset.points_are_random || points.count() >= options.max_cap)
    return {};
  const uint64_t room = std::min(points.count(), options.max_cap - points.count());
  const PointCloud fill = draw_fill_points(dataset.views, points, room, options.seed);
  if (fill.count() == 0) return {};
  std::string note =
      fmt::format("added {} points where photographs show none of the capture's {} (--init-fill)",
                  fill.count(), points.count());
  points.positions.insert(points.positions.end(), fill.positions.begin(), fill.positions.end());
  points.colors.insert(points.colors.end(), fill.colors.begin(), fill.colors.end());
  return note;
}

uint64_t initial_cloud_bytes(uint64_t n, int sh_degree) {
  const auto floats = 14 + 3 * static_cast<uint64_t>(sh_rest_count(sh_degree));
  return n * floats * sizeof(float);
}

}  // namespace millrace
