// Dropping rows that hold no numbers.
#include "train/finite_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "train/kept_rows.h"

namespace millrace {

uint64_t drop_non_finite_rows(GaussianCloud& cloud) {
  const uint64_t n = cloud.count();
  const size_t width = size_t{3} * static_cast<size_t>(sh_rest_count(cloud.sh_degree));
  struct Group {
    std::vector<float>* values;
    size_t width;
  };
  const Group groups[] = {{&cloud.means, 3},     {&cloud.log_scales, 3}, {&cloud.rotations, 4},
                          {&cloud.opacities, 1}, {&cloud.sh0, 3},        {&cloud.sh_rest, width}};
  std::vector<bool> keep(n, true);
  for (uint64_t row = 0; row < n; ++row) {
    for (const Group& group : groups) {
      const auto first = group.values->begin() + static_cast<std::ptrdiff_t>(row * group.width);
      const bool finite = std::all_of(first, first + static_cast<std::ptrdiff_t>(group.width),
                                      [](float value) { return std::isfinite(value); });
      keep[row] = keep[row] && finite;
    }
  }
  return n - keep_rows(cloud, keep);
}

uint64_t drop_free_rows(GaussianCloud& cloud) {
  const uint64_t n = cloud.count();
  std::vector<bool> keep(n);
  for (uint64_t row = 0; row < n; ++row) {
    const float* q = cloud.rotations.data() + 4 * row;
    keep[row] = q[0] != 0 || q[1] != 0 || q[2] != 0 || q[3] != 0;
  }
  return n - keep_rows(cloud, keep);
}

}  // namespace millrace
