// Shapes and finite values of a model.
#include "io/cloud_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNamedRows = 5;  // how many bad rows a message names

// One array of a cloud: `width` floats per Gaussian.
struct Field {
  std::string_view name;
  const std::vector<float>* values;
  size_t width;
};

std::array<Field, 6> fields_of(const GaussianCloud& cloud) {
  const size_t n_rest = 3 * static_cast<size_t>(sh_rest_count(cloud.sh_degree));
  return {{{"means", &cloud.means, 3},
           {"log_scales", &cloud.log_scales, 3},
           {"rotations", &cloud.rotations, 4},
           {"opacities", &cloud.opacities, 1},
           {"sh0", &cloud.sh0, 3},
           {"sh_rest", &cloud.sh_rest, n_rest}}};
}

Result<void> check_shapes(const fs::path& path, const GaussianCloud& cloud) {
  if (cloud.sh_degree < 0 || cloud.sh_degree > 3) {
    return Error{ErrorCode::Internal, fmt::format("cannot write {}: SH degree {} is not 0..3",
                                                  path.string(), cloud.sh_degree)};
  }
  for (const Field& field : fields_of(cloud)) {
    if (field.values->size() != cloud.count() * field.width) {
      return Error{ErrorCode::Internal,
                   fmt::format("cannot write {}: {} holds {} floats where {} Gaussians need {}",
                               path.string(), field.name, field.values->size(), cloud.count(),
                               cloud.count() * field.width)};
    }
  }
  return {};
}

Result<void> check_finite(const fs::path& path, const GaussianCloud& cloud) {
  uint64_t n_bad = 0;
  std::string named;
  for (uint64_t row = 0; row < cloud.count(); ++row) {
    for (const Field& field : fields_of(cloud)) {
      const auto begin = field.values->begin() + static_cast<ptrdiff_t>(row * field.width);
      const auto bad = std::find_if(begin, begin + static_cast<ptrdiff_t>(field.width),
                                    [](float v) { return !std::isfinite(v); });
      if (bad == begin + static_cast<ptrdiff_t>(field.width)) continue;
      if (++n_bad <= kNamedRows) {
        named += fmt::format("{}row {} ({}[{}] = {})", named.empty() ? "" : ", ", row, field.name,
                             bad - begin, *bad);
      }
      break;
    }
  }
  if (n_bad == 0) return {};
  return Error{
      ErrorCode::Internal,
      fmt::format("cannot write {}: {} of {} Gaussians hold non-finite values: {}{}", path.string(),
                  n_bad, cloud.count(), named, n_bad > kNamedRows ? ", ..." : "")};
}

}  // namespace

Result<void> check_writable(const GaussianCloud& cloud, const fs::path& path) {
  MILLRACE_TRY(check_shapes(path, cloud));
  return check_finite(path, cloud);
}

Result<void> check_finite_rows(const GaussianCloud& cloud, const std::string& file) {
  for (const Field& field : fields_of(cloud)) {
    const auto bad = std::find_if(field.values->begin(), field.values->end(),
                                  [](float v) { return !std::isfinite(v); });
    if (bad == field.values->end()) continue;
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: row {} has a non-finite value ({}); remove such Gaussians first", file,
                    static_cast<size_t>(bad - field.values->begin()) / field.width, field.name)};
  }
  return {};
}

}  // namespace millrace
