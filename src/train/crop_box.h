// CropBox: the region that a run concentrates on: reading it from text, and what kernels see of it.
#pragma once

#include <array>
#include <string>

#include "base/result.h"
#include "kernels/splat_params.h"

namespace millrace {

/// A point p of the world is inside if world_to_box (p, 1) lies between min and max; `inverse`
/// makes inside outside.
struct CropBox {
  std::array<double, 3> min = {}, max = {};
  // 4x4, row-major; its last row is 0 0 0 1.
  std::array<double, 16> world_to_box = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  bool inverse = false;
  bool operator==(const CropBox&) const = default;
};

/// Reads {"min": [3], "max": [3], "world_to_box": [16, row-major], "inverse": bool}; the last two
/// may be missing. Errors: Usage, beginning with `place` and naming the key: not JSON, an unknown
/// key, numbers that are missing or not finite, a min that is not below its max, a matrix that is
/// not affine.
Result<CropBox> parse_crop_box(const std::string& json, const std::string& place);

/// The value of --crop-box: six numbers "x,y,z,x,y,z" (min, then max), or the name of a file for
/// parse_crop_box(). Errors: Usage, naming the flag and the file.
Result<CropBox> crop_box_of_setting(const std::string& value);

/// Whether the box keeps a point, [3] world units.
bool keeps(const CropBox& box, const float* point);

/// What kernels see. `rate_scale` is that of rows outside.
CropStep crop_step(const CropBox& box, double rate_scale);

}  // namespace millrace
