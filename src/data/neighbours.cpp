// Nearest neighbours by a k-d tree.
#include "data/neighbours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nanoflann.hpp>

namespace millrace {
namespace {

/// The cloud with its bounding box brought to a largest side of 1, in double: squares neither
/// overflow nor vanish, whatever the world's unit.
struct Cloud {
  std::vector<std::array<double, 3>> points;
  size_t kdtree_get_point_count() const { return points.size(); }
  double kdtree_get_pt(size_t i, size_t axis) const { return points[i][axis]; }
  template <class Box>
  bool kdtree_get_bbox(Box&) const {
    return false;
  }
};

using Tree = nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<double, Cloud>, Cloud,
                                                 3, size_t>;

float to_positive_float(double value) {
  return static_cast<float>(std::clamp(value, double{std::numeric_limits<float>::min()},
                                       double{std::numeric_limits<float>::max()}));
}

}  // namespace

std::vector<float> mean_square_distance_to_3_nearest(std::span<const float> xyz) {
  const size_t n = xyz.size() / 3;
  std::vector<float> result(n, 1.0f);
  if (n < 2) return result;
  std::array<double, 3> low, high;
  for (size_t axis = 0; axis < 3; ++axis) {
    low[axis] = high[axis] = xyz[axis];
    for (size_t i = 0; i < n; ++i) {
      low[axis] = std::min<double>(low[axis], xyz[3 * i + axis]);
      high[axis] = std::max<double>(high[axis], xyz[3 * i + axis]);
    }
  }
  const double side = std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]});
  if (!(side > 0) || !std::isfinite(side)) return result;
  Cloud cloud;
  cloud.points.resize(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t axis = 0; axis < 3; ++axis) {
      cloud.points[i][axis] = (xyz[3 * i + axis] - low[axis]) / side;
    }
  }
  const Tree tree(3, cloud, nanoflann::KDTreeSingleIndexAdaptorParams(16));

  const size_t n_wanted = std::min<size_t>(4, n);  // the point itself and its 3 nearest
  std::vector<double> means(n), positive;
  positive.reserve(n);
  std::array<size_t, 4> indices;
  std::array<double, 4> squares;
  for (size_t i = 0; i < n; ++i) {
    const size_t found =
        tree.knnSearch(cloud.points[i].data(), n_wanted, indices.data(), squares.data());
    double sum = 0;
    for (size_t k = 1; k < found; ++k)
      sum += squares[k];  // the first is the point, or one equal to it
    means[i] = found > 1 ? sum / static_cast<double>(found - 1) : 0;
    if (means[i] > 0) positive.push_back(means[i]);
  }
  if (positive.empty()) return result;
  const auto middle = positive.begin() + static_cast<ptrdiff_t>(positive.size() / 2);
  std::nth_element(positive.begin(), middle, positive.end());
  const double median = *middle;
  constexpr double kDuplicate = 1e-8;  // squared: a ten-thousandth of the typical distance
  for (size_t i = 0; i < n; ++i) {
    const double mean = means[i] > kDuplicate * median ? means[i] : median;
    result[i] = to_positive_float(mean * side * side);
  }
  return result;
}

}  // namespace millrace
