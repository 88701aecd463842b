// RecentPsnr: the PSNR of the last steps' views together.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace millrace {

/// Over the mean squared errors of the last 50 steps. Allocates nothing.
class RecentPsnr {
 public:
  /// Takes a step's error; the PSNR in dB with it.
  double with(float mse) {
    errors_[n_++ % errors_.size()] = mse;
    const size_t n = std::min(n_, errors_.size());
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += errors_[i];
    return -10 * std::log10(std::max(sum / static_cast<double>(n), 1e-10));
  }

 private:
  std::array<float, 50> errors_ = {};
  size_t n_ = 0;
};

}  // namespace millrace
