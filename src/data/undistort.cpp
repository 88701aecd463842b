// Undistortion geometry. Pixel centres at +0.5 throughout.
#include "data/undistort.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

/// The rectangle of the unit plane whose every point has a source inside the outermost pixel
/// centres.
struct Rectangle {
  double left = -1e300, top = -1e300, right = 1e300, bottom = 1e300;
};

std::optional<Rectangle> valid_rectangle(const Lens& lens) {
  constexpr int kSamples = 257;  // odd, so that the middle of each side is one of them
  Rectangle r;
  for (int i = 0; i < kSamples; ++i) {
    const double s = static_cast<double>(i) / (kSamples - 1);
    const double px = (0.5 + s * (lens.width - 1) - lens.cx) / lens.fx;
    const double py = (0.5 + s * (lens.height - 1) - lens.cy) / lens.fy;
    const auto left = undistort(lens, (0.5 - lens.cx) / lens.fx, py);
    const auto right = undistort(lens, (lens.width - 0.5 - lens.cx) / lens.fx, py);
    const auto top = undistort(lens, px, (0.5 - lens.cy) / lens.fy);
    const auto bottom = undistort(lens, px, (lens.height - 0.5 - lens.cy) / lens.fy);
    if (!left || !right || !top || !bottom) return std::nullopt;
    r.left = std::max(r.left, (*left)[0]);
    r.right = std::min(r.right, (*right)[0]);
    r.top = std::max(r.top, (*top)[1]);
    r.bottom = std::min(r.bottom, (*bottom)[1]);
  }
  return r;
}

}  // namespace

std::optional<std::array<double, 2>> undistort(const Lens& lens, double x, double y) {
  double u = x, v = y;
  for (int iteration = 0; iteration < 50; ++iteration) {
    const double r2 = u * u + v * v;
    const double radial = 1 + r2 * (lens.k1 + r2 * lens.k2);
    const double d_radial = 2 * (lens.k1 + 2 * r2 * lens.k2);  // over u, divided by u; likewise v
    const double a = radial + u * u * d_radial + 2 * lens.p1 * v + 6 * lens.p2 * u;
    const double b = u * v * d_radial + 2 * lens.p1 * u + 2 * lens.p2 * v;
    const double d = radial + v * v * d_radial + 2 * lens.p2 * u + 6 * lens.p1 * v;
    const double determinant = a * d - b * b;
    if (!(determinant > 1e-6)) return std::nullopt;
    const auto at = distort(lens, u, v);
    const double ex = at[0] - x, ey = at[1] - y;
    if (std::abs(ex) + std::abs(ey) < 1e-12 * (1 + std::abs(x) + std::abs(y))) return {{u, v}};
    u -= (d * ex - b * ey) / determinant;
    v -= (a * ey - b * ex) / determinant;
  }
  return std::nullopt;
}

Result<Undistorted> undistorted_camera(const Lens& lens, UndistortTo to, const std::string& where) {
  Undistorted result{lens.width, lens.height, lens.fx, lens.fy, lens.cx, lens.cy, 0, 0};
  if (lens.kind == LensKind::Pinhole) return result;
  const auto refuse = [&](const char* what) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: {} (k1 {}, k2 {}, p1 {}, p2 {}); the calibration is wrong, or the images "
                    "must be undistorted by the tool that made it",
                    where, what, lens.k1, lens.k2, lens.p1, lens.p2)};
  };
  const auto valid = valid_rectangle(lens);
  if (!valid) return refuse("the lens folds over within the image");
  if (!(valid->right > valid->left && valid->bottom > valid->top) || lens.width < 2 ||
      lens.height < 2) {
    return refuse("no pixel of the image is left after undistortion");
  }
  if (to == UndistortTo::FillFrame) {
    result.width = lens.width - 1;
    result.height = lens.height - 1;
    result.fx = result.width / (valid->right - valid->left);
    result.fy = result.height / (valid->bottom - valid->top);
    result.cx = 0.5 - result.fx * valid->left;
    result.cy = 0.5 - result.fy * valid->top;
    return result;
  }
  // Indices of the first and last pixel whose centre lies in the rectangle, within the image.
  const auto range = [](double focal, double centre, double low, double high, uint32_t n) {
    constexpr double kRounding = 1e-9;
    const double first = std::ceil(focal * low + centre - 0.5 - kRounding);
    const double last = std::floor(focal * high + centre - 0.5 + kRounding);
    return std::array<double, 2>{std::max(0.0, first), std::min<double>(n - 1, last)};
  };
  const auto columns = range(lens.fx, lens.cx, valid->left, valid->right, lens.width);
  const auto rows = range(lens.fy, lens.cy, valid->top, valid->bottom, lens.height);
  if (columns[1] < columns[0] || rows[1] < rows[0]) {
    return refuse("no pixel of the image is left after undistortion");
  }
  result.crop_x = static_cast<uint32_t>(columns[0]);
  result.crop_y = static_cast<uint32_t>(rows[0]);
  result.width = static_cast<uint32_t>(columns[1] - columns[0]) + 1;
  result.height = static_cast<uint32_t>(rows[1] - rows[0]) + 1;
  result.cx -= result.crop_x;
  result.cy -= result.crop_y;
  return result;
}

}  // namespace millrace
