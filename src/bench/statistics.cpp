// Order statistics and a line fit.
#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace millrace {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void drop_missing(std::vector<double>& values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
}

}  // namespace

double median(std::vector<double> values) {
  drop_missing(values);
  if (values.empty()) return kNan;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Spread spread_of(const std::vector<double>& all) {
  std::vector<double> values = all;
  drop_missing(values);
  if (values.empty()) return {kNan, kNan, kNan, kNan, 0};
  Spread spread;
  spread.n = values.size();
  spread.median = median(values);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  spread.min = *min;
  spread.max = *max;
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - spread.median));
  spread.mad = median(deviations);
  return spread;
}

double slope(const std::vector<double>& values) {
  double n = 0, x_sum = 0, y_sum = 0, xx_sum = 0, xy_sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const auto x = static_cast<double>(i);
    n += 1;
    x_sum += x;
    y_sum += values[i];
    xx_sum += x * x;
    xy_sum += x * values[i];
  }
  const double determinant = n * xx_sum - x_sum * x_sum;
  return determinant > 0 ? (n * xy_sum - x_sum * y_sum) / determinant : kNan;
}

}  // namespace millrace
