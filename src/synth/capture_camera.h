// Cameras of the synthetic capture: where they stand, their lens, and what each does to brightness.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "synth/make_capture.h"
#include "synth/scene.h"

namespace millrace::synth {

/// One photograph to take. Camera axes: x right, y down, z forward; world_to_camera is [3,4]
/// row-major.
struct Shot {
  std::string name;  // file name of the photograph
  std::array<double, 12> world_to_camera = {};
  double ev = 0;  // stops; the photograph is 2^ev brighter than neutral
  std::array<double, 3> white_balance = {1, 1, 1};  // gains of linear red, green, blue

  std::array<double, 3> to_camera(const std::array<double, 3>& world) const;
  /// World direction of a camera direction.
  Vec3 to_world(double x, double y, double z) const;
  Vec3 centre() const;
  /// Linear gain of each channel: 2^ev times the white balance.
  std::array<float, 3> gains() const;
};

/// Vignetting: linear light times 1 + a r^2 + b r^4, r = distance from the principal point over
/// half the image's diagonal.
struct Vignette {
  double a = 0, b = 0;
  double at(const Lens& lens, double x, double y) const;
};

/// The lens of a capture: fx = fy = 0.9 x the longer side, principal point in the middle, and
/// OPENCV distortion when asked for.
Lens make_lens(const CaptureOptions& options);
Vignette make_vignette(const CaptureOptions& options);

/// Pixel position (centres at +0.5) of a camera-space direction with z > 0.
std::array<double, 2> project(const Lens& lens, const std::array<double, 3>& in_camera);
/// Camera-space direction (x, y, 1) seen at a pixel position: the inverse of project().
std::array<double, 2> unproject(const Lens& lens, double u, double v);

/// An orbit at one to three heights around the scene, names IMG_0001.jpg and on.
std::vector<Shot> make_shots(const CaptureOptions& options);

}  // namespace millrace::synth
