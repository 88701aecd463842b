// GaussianCloud: a model on the host, in the units in which it is trained and written to PLY.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace {

/// How many coefficients per channel a degree has beyond the constant one: 0, 3, 8, 15.
constexpr int sh_rest_count(int degree) { return (degree + 1) * (degree + 1) - 1; }

/// N Gaussians. All arrays are row-major with one row per Gaussian.
struct GaussianCloud {
  int sh_degree = 3;
  bool mip_filter = false;        // trained with the mip filter, and to be drawn with it
  std::vector<float> means;       // [N,3] world units
  std::vector<float> log_scales;  // [N,3] natural log of the standard deviation in world units
  std::vector<float> rotations;   // [N,4] quaternion w,x,y,z, not necessarily unit
  std::vector<float> opacities;   // [N] logit
  std::vector<float> sh0;         // [N,3]
  std::vector<float> sh_rest;     // [N,K,3], K = sh_rest_count(sh_degree)
  uint64_t count() const { return opacities.size(); }
};

}  // namespace millrace
