// Statistics of few measurements: medians, spread, drift. What is not a number is left out.
#pragma once

#include <cstddef>
#include <vector>

namespace millrace {

/// NaN for no values; the mean of the middle two for an even number.
double median(std::vector<double> values);

/// How measurements lie. All NaN, and n 0, where there is none.
struct Spread {
  double median = 0, min = 0, max = 0;
  double mad = 0;  // median absolute deviation from the median, not scaled
  size_t n = 0;
};
Spread spread_of(const std::vector<double>& values);

/// Least-squares slope of `values` over 0, 1, 2, ...: the change from one to the next. NaN with
/// fewer than two.
double slope(const std::vector<double>& values);

}  // namespace millrace
