// The table of COLMAP camera models and their reduction to a pinhole with k1 k2 p1 p2.
#include "data/camera_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/image_codec.h"

namespace millrace {
namespace {

constexpr CameraModel kModels[] = {
    {0, "SIMPLE_PINHOLE", 3},
    {1, "PINHOLE", 4},
    {2, "SIMPLE_RADIAL", 4},
    {3, "RADIAL", 5},
    {4, "OPENCV", 8},
    {5, "OPENCV_FISHEYE", 8},
    {6, "FULL_OPENCV", 12},
    {7, "FOV", 5},
    {8, "SIMPLE_RADIAL_FISHEYE", 4},
    {9, "RADIAL_FISHEYE", 5},
    {10, "THIN_PRISM_FISHEYE", 12},
    {11, "RAD_TAN_THIN_PRISM_FISHEYE", 16},
    {12, "SIMPLE_DIVISION", 4},
    {13, "DIVISION", 5},
    {14, "SIMPLE_FISHEYE", 3},
    {15, "FISHEYE", 4},
    {16, "EUCM", 6},
    {17, "EQUIRECTANGULAR", 2},
};

}  // namespace

const CameraModel* find_camera_model(int id) {
  const auto* found = std::find_if(std::begin(kModels), std::end(kModels),
                                   [id](const CameraModel& model) { return model.id == id; });
  return found == std::end(kModels) ? nullptr : found;
}

const CameraModel* find_camera_model(std::string_view name) {
  const auto* found = std::find_if(std::begin(kModels), std::end(kModels),
                                   [name](const CameraModel& model) { return model.name == name; });
  return found == std::end(kModels) ? nullptr : found;
}

Result<void> check_lens(const Lens& lens, std::string_view where) {
  const auto refuse = [&](const std::string& what) {
    return Error{ErrorCode::Dataset, fmt::format("{}: {}", where, what)};
  };
  if (!is_sane_size(lens.width, lens.height)) {
    return refuse(
        fmt::format("a size of {}x{} pixels is not usable (sides 1 to {}, at most {} pixels)",
                    lens.width, lens.height, kMaxSide, kMaxPixels));
  }
  for (const double value :
       {lens.fx, lens.fy, lens.cx, lens.cy, lens.k1, lens.k2, lens.p1, lens.p2}) {
    if (!std::isfinite(value)) return refuse("a camera parameter is not a finite number");
  }
  for (const double value : {lens.fx, lens.fy, lens.cx, lens.cy}) {
    // Far beyond any lens; larger ones overflow single precision when rays are squared.
    if (std::abs(value) > 1e9) {
      return refuse(fmt::format("a camera parameter of {} pixels is not usable", value));
    }
  }
  if (!(lens.fx > 0 && lens.fy > 0)) {
    return refuse(fmt::format("the focal length {} x {} is not above zero", lens.fx, lens.fy));
  }
  return {};
}

Result<Lens> make_lens(const CameraModel& model, std::span<const double> params, uint64_t width,
                       uint64_t height, std::string_view where) {
  if (!is_sane_size(width, height)) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: a size of {}x{} pixels is not usable (sides 1 to {}, at most {} pixels)",
                    where, width, height, kMaxSide, kMaxPixels)};
  }
  const auto p = [&](size_t i) { return params[i]; };
  const auto zero_from = [&](size_t begin) {
    return std::all_of(params.begin() + static_cast<ptrdiff_t>(begin), params.end(),
                       [](double value) { return value == 0; });
  };
  Lens lens;
  lens.width = static_cast<uint32_t>(width);
  lens.height = static_cast<uint32_t>(height);
  const auto one_focal = [&] { lens.fx = lens.fy = p(0), lens.cx = p(1), lens.cy = p(2); };
  const auto two_focals = [&] { lens.fx = p(0), lens.fy = p(1), lens.cx = p(2), lens.cy = p(3); };
  bool usable = true;
  switch (model.id) {
    case 0:
      one_focal();
      break;
    case 1:
      two_focals();
      break;
    case 2:
      one_focal(), lens.k1 = p(3);
      break;
    case 3:
      one_focal(), lens.k1 = p(3), lens.k2 = p(4);
      break;
    case 4:
      two_focals(), lens.k1 = p(4), lens.k2 = p(5), lens.p1 = p(6), lens.p2 = p(7);
      break;
    case 6:
      // RealityScan writes FULL_OPENCV for any camera; without the rational terms it is OPENCV.
      usable = zero_from(8);
      two_focals(), lens.k1 = p(4), lens.k2 = p(5), lens.p1 = p(6), lens.p2 = p(7);
      break;
    case 7:
    case 13:
      usable = zero_from(4), two_focals();
      break;
    case 12:
      usable = zero_from(3), one_focal();
      break;
    default:
      usable = false;
  }
  if (!usable) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{} has the model {}, which cannot be trained on (usable: SIMPLE_PINHOLE, "
                    "PINHOLE, SIMPLE_RADIAL, RADIAL, OPENCV, and others without distortion); "
                    "undistort the images first, for example with colmap image_undistorter",
                    where, model.name)};
  }
  const bool distorted = lens.k1 != 0 || lens.k2 != 0 || lens.p1 != 0 || lens.p2 != 0;
  lens.kind = distorted ? LensKind::OpenCv : LensKind::Pinhole;
  MILLRACE_TRY(check_lens(lens, where));
  return lens;
}

}  // namespace millrace
