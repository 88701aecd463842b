// Spatial orders of rows on the host.
#include "formats/space_order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>

namespace millrace {
namespace {

struct Box {
  std::array<float, 3> min, max;

  static Box empty() {
    constexpr float kFar = std::numeric_limits<float>::max();
    return {{kFar, kFar, kFar}, {-kFar, -kFar, -kFar}};
  }
  void add(const float* p) {
    for (size_t k = 0; k < 3; ++k) {
      min[k] = std::min(min[k], p[k]);
      max[k] = std::max(max[k], p[k]);
    }
  }
};

// 21 bits with two zeros between each.
uint64_t spread(uint64_t x) {
  x = (x | (x << 32)) & 0x001F00000000FFFFull;
  x = (x | (x << 16)) & 0x001F0000FF0000FFull;
  x = (x | (x << 8)) & 0x100F00F00F00F00Full;
  x = (x | (x << 4)) & 0x10C30C30C30C30C3ull;
  return (x | (x << 2)) & 0x1249249249249249ull;
}

}  // namespace

std::vector<uint32_t> morton_order(const GaussianCloud& cloud) {
  Box box = Box::empty();
  for (size_t i = 0; i < cloud.count(); ++i) box.add(&cloud.means[3 * i]);
  std::vector<uint64_t> codes(cloud.count());
  for (size_t i = 0; i < codes.size(); ++i) {
    for (uint32_t k = 0; k < 3; ++k) {
      const double side = static_cast<double>(box.max[k]) - box.min[k];
      const double at = side > 0 ? (cloud.means[3 * i + k] - box.min[k]) / side : 0.0;
      codes[i] |= spread(static_cast<uint64_t>(std::clamp(at, 0.0, 1.0) * 2097151)) << k;
    }
  }
  std::vector<uint32_t> rows(cloud.count());
  std::iota(rows.begin(), rows.end(), 0u);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](uint32_t a, uint32_t b) { return codes[a] < codes[b]; });
  return rows;
}

GaussianCloud take_rows(const GaussianCloud& cloud, const std::vector<uint32_t>& rows) {
  GaussianCloud out;
  out.sh_degree = cloud.sh_degree;
  const auto take = [&](std::vector<float>& to, const std::vector<float>& from, size_t width) {
    to.reserve(rows.size() * width);
    for (const uint32_t row : rows) {
      const auto begin = from.begin() + static_cast<ptrdiff_t>(row * width);
      to.insert(to.end(), begin, begin + static_cast<ptrdiff_t>(width));
    }
  };
  take(out.means, cloud.means, 3);
  take(out.log_scales, cloud.log_scales, 3);
  take(out.rotations, cloud.rotations, 4);
  take(out.opacities, cloud.opacities, 1);
  take(out.sh0, cloud.sh0, 3);
  take(out.sh_rest, cloud.sh_rest, 3 * static_cast<size_t>(sh_rest_count(cloud.sh_degree)));
  return out;
}

}  // namespace millrace
