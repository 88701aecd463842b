// Moving the rows that stay to the front.
#include "train/kept_rows.h"

#include <algorithm>
#include <cstddef>

namespace millrace {

uint64_t keep_rows(GaussianCloud& cloud, const std::vector<bool>& keep) {
  const auto n_kept = static_cast<uint64_t>(std::ranges::count(keep, true));
  if (n_kept == keep.size()) return n_kept;
  const size_t n_rest = size_t{3} * static_cast<size_t>(sh_rest_count(cloud.sh_degree));
  struct Group {
    std::vector<float>* values;
    size_t width;
  };
  for (const Group& group :
       {Group{&cloud.means, 3}, Group{&cloud.log_scales, 3}, Group{&cloud.rotations, 4},
        Group{&cloud.opacities, 1}, Group{&cloud.sh0, 3}, Group{&cloud.sh_rest, n_rest}}) {
    auto to = group.values->begin();
    for (size_t row = 0; row < keep.size(); ++row) {
      if (!keep[row]) continue;
      to = std::copy_n(group.values->begin() + static_cast<std::ptrdiff_t>(row * group.width),
                       group.width, to);
    }
    group.values->resize(n_kept * group.width);
  }
  return n_kept;
}

}  // namespace millrace
