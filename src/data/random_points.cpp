// Random initial points, and the geometry of where a set of cameras looks.
#include "data/random_points.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>

#include "base/philox.h"

namespace millrace {
namespace {

constexpr double kNear = 0.1, kFar = 2.0;          // times the distance of the focus
constexpr double kWideNear = 0.5, kWideFar = 8.0;  // for the points of the background
constexpr uint32_t kWideEvery = 10;                // one point in this many is for the background
constexpr size_t kMaxJudges = 64;  // cameras that are asked whether they see a point
constexpr uint32_t kStrictTries = 24, kTries = 48;  // draws at the full and at the lower demand
constexpr uint32_t kPilotDraws = 512;  // draws that tell how many cameras see a point at all

struct Eye {
  Eigen::Matrix3d rotation;  // world to camera
  Eigen::Vector3d translation, centre, axis;
  const Camera* camera;
  double depth = 0;  // of the focus
};

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Sets each eye's depth of focus: from the point nearest to the optical axes, where there is such
/// a point in front of most cameras; else from the spread of the cameras.
void set_focus_depths(std::vector<Eye>& eyes) {
  Eigen::Vector3d mean = Eigen::Vector3d::Zero();
  for (const Eye& eye : eyes) mean += eye.centre / static_cast<double>(eyes.size());
  std::vector<double> spread;
  double farthest = 0;
  for (const Eye& eye : eyes) {
    spread.push_back((eye.centre - mean).norm());
    farthest = std::max(farthest, eye.centre.cwiseAbs().maxCoeff());
  }
  double unit = median_of(spread);
  if (!(unit > 1e-9 * farthest)) unit = 1;

  // Least squares over the axes, then again with weights 1/distance so that a stray camera counts
  // little.
  Eigen::Vector3d focus = mean;
  std::vector<double> weights(eyes.size(), 1.0);
  bool solved = false;
  for (int iteration = 0; iteration < 8; ++iteration) {
    Eigen::Matrix3d a = Eigen::Matrix3d::Zero();
    Eigen::Vector3d b = Eigen::Vector3d::Zero();
    double total = 0;
    for (size_t i = 0; i < eyes.size(); ++i) {
      const Eigen::Matrix3d across =
          Eigen::Matrix3d::Identity() - eyes[i].axis * eyes[i].axis.transpose();
      a += weights[i] * across;
      b += weights[i] * across * (eyes[i].centre - mean);
      total += weights[i];
    }
    const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> eigen(a);
    solved = eigen.eigenvalues()[0] > 1e-4 * total;
    if (!solved) break;  // the axes are (nearly) parallel
    focus = mean + a.ldlt().solve(b);
    for (size_t i = 0; i < eyes.size(); ++i) {
      const Eigen::Vector3d to = focus - eyes[i].centre;
      const double off = (to - eyes[i].axis * eyes[i].axis.dot(to)).norm();
      weights[i] = 1 / (off + 0.01 * unit);
    }
  }
  std::vector<double> ahead;
  for (Eye& eye : eyes) {
    eye.depth = eye.axis.dot(focus - eye.centre);
    if (eye.depth > 0) ahead.push_back(eye.depth);
  }
  const bool looks_inwards =
      solved && 2 * ahead.size() > eyes.size() && median_of(ahead) > 0.1 * unit;
  const double typical = looks_inwards ? median_of(ahead) : 4 * unit;
  for (Eye& eye : eyes) {
    if (!looks_inwards) eye.depth = typical;
    eye.depth = std::clamp(eye.depth, 0.2 * typical, 5 * typical);
  }
}

bool sees(const Eye& eye, const Eigen::Vector3d& point) {
  const Eigen::Vector3d p = eye.rotation * point + eye.translation;
  if (!(p.z() > 0.05 * eye.depth)) return false;
  const double u = eye.camera->fx * p.x() / p.z() + eye.camera->cx;
  const double v = eye.camera->fy * p.y() / p.z() + eye.camera->cy;
  return u >= 0 && v >= 0 && u <= eye.camera->width && v <= eye.camera->height;
}

/// The frusta of a set of cameras, and random points in them.
class Frusta {
 public:
  explicit Frusta(const std::vector<View>& views) {
    for (const View& view : views) {
      if (view.held_out) continue;
      const auto& m = view.camera.world_to_camera;
      Eye eye;
      eye.rotation << m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10];
      eye.translation << m[3], m[7], m[11];
      eye.centre = -eye.rotation.transpose() * eye.translation;
      eye.axis = eye.rotation.row(2).transpose().normalized();
      eye.camera = &view.camera;
      eyes_.push_back(eye);
    }
    if (eyes_.empty()) return;
    set_focus_depths(eyes_);
    const size_t n_judges = std::min(eyes_.size(), kMaxJudges);
    for (size_t i = 0; i < n_judges; ++i) judges_.push_back(&eyes_[i * eyes_.size() / n_judges]);
  }

  bool empty() const { return eyes_.empty(); }
  size_t n_judges() const { return judges_.size(); }

  /// A point in the frustum of a random camera. Near points are drawn evenly in depth; those of the
  /// background evenly in inverse depth, as images see it.
  Eigen::Vector3d draw(const std::array<uint32_t, 4>& random, bool wide) const {
    const Eye& eye = eyes_[(uint64_t{random[0]} * eyes_.size()) >> 32];
    const Camera& camera = *eye.camera;
    const double u = uniform_open(random[1]) * camera.width;
    const double v = uniform_open(random[2]) * camera.height;
    const double s = uniform_open(random[3]);
    const double z =
        eye.depth * (wide ? 1 / ((1 - s) / kWideNear + s / kWideFar) : kNear + s * (kFar - kNear));
    const Eigen::Vector3d in_camera((u - camera.cx) / camera.fx * z,
                                    (v - camera.cy) / camera.fy * z, z);
    return eye.rotation.transpose() * (in_camera - eye.translation);
  }

  /// How many judges see `point`; stops counting at `enough`, or when it can no longer be reached.
  size_t count_seen(const Eigen::Vector3d& point, size_t enough) const {
    size_t n_seen = 0;
    for (size_t i = 0; i < judges_.size(); ++i) {
      if (n_seen >= enough || n_seen + (judges_.size() - i) < enough) break;
      n_seen += sees(*judges_[i], point) ? 1 : 0;
    }
    return n_seen;
  }

 private:
  std::vector<Eye> eyes_;
  std::vector<const Eye*> judges_;
};

}  // namespace

PointCloud draw_points_in_frusta(const std::vector<View>& views, uint64_t n_points, uint64_t seed) {
  const Frusta frusta(views);
  PointCloud cloud;
  if (frusta.empty()) return cloud;

  // Each point asks for its own number of witnesses, from a quarter to three quarters of the
  // cameras, so that points gather where many look. On a walk through rooms no point has that many:
  // what the upper third and tenth of a trial reach is the limit.
  std::vector<size_t> reached;
  for (uint32_t i = 0; i < kPilotDraws; ++i) {
    const auto random = philox(seed, 2, RandomPurpose::InitPoints, i);
    reached.push_back(frusta.count_seen(frusta.draw(random, false), frusta.n_judges()));
  }
  std::sort(reached.begin(), reached.end());
  const size_t few = std::min<size_t>(2, frusta.n_judges());
  const size_t low =
      std::max(few, std::min((frusta.n_judges() + 3) / 4, reached[kPilotDraws * 2 / 3]));
  const size_t high =
      std::max(low, std::min(frusta.n_judges() * 3 / 4, reached[kPilotDraws * 9 / 10]));

  cloud.positions.reserve(3 * n_points);
  cloud.colors.reserve(3 * n_points);
  for (uint64_t i = 0; i < n_points; ++i) {
    const uint32_t row = static_cast<uint32_t>(i);
    const bool wide = i % kWideEvery == kWideEvery - 1;
    const auto own = philox(seed, 1, RandomPurpose::InitPoints, row);
    const size_t demand = wide ? few : low + ((uint64_t{own[3]} * (high - low + 1)) >> 32);
    Eigen::Vector3d point = Eigen::Vector3d::Zero();
    for (uint32_t attempt = 0; attempt < kTries; ++attempt) {
      point = frusta.draw(philox(seed, 0, RandomPurpose::InitPoints, row, attempt), wide);
      const size_t asked = attempt < kStrictTries ? demand : few;
      if (frusta.count_seen(point, asked) >= asked) break;
    }
    for (int k = 0; k < 3; ++k) {
      cloud.positions.push_back(static_cast<float>(point[k]));
      cloud.colors.push_back(static_cast<uint8_t>(own[k] >> 24));
    }
  }
  return cloud;
}

}  // namespace millrace
