// The lens polynomial, its inverse, and the pinhole camera that a distorted image is resampled to.
#pragma once

#include <array>
#include <optional>

#include "base/result.h"
#include "data/dataset.h"

namespace millrace {

/// Where a ray (x, y, 1) lands on the unit image plane after the lens: the polynomial of Lens.
inline std::array<double, 2> distort(const Lens& lens, double x, double y) {
  const double r2 = x * x + y * y;
  const double radial = 1 + r2 * (lens.k1 + r2 * lens.k2);
  return {x * radial + 2 * lens.p1 * x * y + lens.p2 * (r2 + 2 * x * x),
          y * radial + 2 * lens.p2 * x * y + lens.p1 * (r2 + 2 * y * y)};
}

/// The inverse of distort by Newton's method; none where the lens folds over or the method does not
/// settle.
std::optional<std::array<double, 2>> undistort(const Lens& lens, double x, double y);

/// A pinhole without pose, and its place on the full undistorted image.
struct Undistorted {
  uint32_t width = 0, height = 0;
  double fx = 0, fy = 0, cx = 0, cy = 0;
  uint32_t crop_x = 0, crop_y = 0;
};

/// The pinhole that `lens` is undistorted to, all of whose pixels have a source inside the image.
/// UndistortTo::FillFrame is OpenCV's getOptimalNewCameraMatrix with alpha = 0: the largest
/// rectangle of valid pixel centres is stretched to the frame and its sides run between pixel
/// centres, which costs one row and one column (720x1280 becomes 719x1279). UndistortTo::KeepFocal
/// keeps focal lengths and pixel grid and crops. A lens without distortion is returned as it is in
/// both. Error: Dataset, if the lens folds over within the image or nothing is left; `where` opens
/// the message.
Result<Undistorted> undistorted_camera(const Lens& lens, UndistortTo to, const std::string& where);

}  // namespace millrace
