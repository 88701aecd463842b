// Camera placement, lens model and per-image exposure of the synthetic capture.
#include "synth/capture_camera.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "base/philox.h"

namespace millrace::synth {

namespace {

using Double3 = std::array<double, 3>;

Double3 minus(const Double3& a, const Double3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Double3 cross(const Double3& a, const Double3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const Double3& a, const Double3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Double3 unit(const Double3& a) {
  const double inverse = 1.0 / std::sqrt(dot(a, a));
  return {a[0] * inverse, a[1] * inverse, a[2] * inverse};
}

// A number in (-1, 1).
double symmetric(uint32_t word) { return 2.0 * static_cast<double>(uniform_open(word)) - 1.0; }

void look_at(Shot& shot, const Double3& centre, const Double3& target, double roll) {
  const Double3 forward = unit(minus(target, centre));
  const Double3 level_right = unit(cross(forward, {0, 0, 1}));
  const Double3 level_down = cross(forward, level_right);
  const double c = std::cos(roll), s = std::sin(roll);
  Double3 rows[3];
  for (size_t k = 0; k < 3; ++k) {
    rows[0][k] = c * level_right[k] + s * level_down[k];
    rows[1][k] = c * level_down[k] - s * level_right[k];
    rows[2][k] = forward[k];
  }
  for (size_t row = 0; row < 3; ++row) {
    for (size_t k = 0; k < 3; ++k) shot.world_to_camera[4 * row + k] = rows[row][k];
    shot.world_to_camera[4 * row + 3] = -dot(rows[row], centre);
  }
}

}  // namespace

std::array<double, 3> Shot::to_camera(const std::array<double, 3>& p) const {
  std::array<double, 3> out;
  for (size_t row = 0; row < 3; ++row) {
    const double* r = &world_to_camera[4 * row];
    out[row] = r[0] * p[0] + r[1] * p[1] + r[2] * p[2] + r[3];
  }
  return out;
}

Vec3 Shot::to_world(double x, double y, double z) const {
  const auto& m = world_to_camera;
  return {static_cast<float>(m[0] * x + m[4] * y + m[8] * z),
          static_cast<float>(m[1] * x + m[5] * y + m[9] * z),
          static_cast<float>(m[2] * x + m[6] * y + m[10] * z)};
}

Vec3 Shot::centre() const {
  return -to_world(world_to_camera[3], world_to_camera[7], world_to_camera[11]);
}

std::array<float, 3> Shot::gains() const {
  std::array<float, 3> out;
  for (size_t k = 0; k < 3; ++k) out[k] = static_cast<float>(std::exp2(ev) * white_balance[k]);
  return out;
}

double Vignette::at(const Lens& lens, double x, double y) const {
  const double half2 = 0.25 * (static_cast<double>(lens.width) * lens.width +
                               static_cast<double>(lens.height) * lens.height);
  const double r2 = ((x - lens.cx) * (x - lens.cx) + (y - lens.cy) * (y - lens.cy)) / half2;
  return 1 + r2 * (a + r2 * b);
}

Lens make_lens(const CaptureOptions& options) {
  Lens lens;
  lens.width = options.width;
  lens.height = options.height;
  lens.fx = lens.fy = 0.9 * std::max(options.width, options.height);
  lens.cx = 0.5 * options.width;
  lens.cy = 0.5 * options.height;
  if (options.distortion) {
    lens.kind = LensKind::OpenCv;
    lens.k1 = -0.17;
    lens.k2 = 0.045;
    lens.p1 = 0.0012;
    lens.p2 = -0.0009;
  }
  return lens;
}

Vignette make_vignette(const CaptureOptions& options) {
  return options.vignetting ? Vignette{-0.42, 0.06} : Vignette{};
}

std::array<double, 2> project(const Lens& lens, const std::array<double, 3>& p) {
  const double x = p[0] / p[2], y = p[1] / p[2], r2 = x * x + y * y;
  const double radial = 1 + r2 * (lens.k1 + r2 * lens.k2);
  const double xd = x * radial + 2 * lens.p1 * x * y + lens.p2 * (r2 + 2 * x * x);
  const double yd = y * radial + lens.p1 * (r2 + 2 * y * y) + 2 * lens.p2 * x * y;
  return {lens.fx * xd + lens.cx, lens.fy * yd + lens.cy};
}

std::array<double, 2> unproject(const Lens& lens, double u, double v) {
  const double xd = (u - lens.cx) / lens.fx, yd = (v - lens.cy) / lens.fy;
  if (lens.kind == LensKind::Pinhole) return {xd, yd};
  // Fixed point; each round shrinks the error by about |k1| r^2 x 3, at most 0.3 in the corners.
  double x = xd, y = yd;
  for (int round = 0; round < 14; ++round) {
    const double r2 = x * x + y * y, radial = 1 + r2 * (lens.k1 + r2 * lens.k2);
    const double dx = 2 * lens.p1 * x * y + lens.p2 * (r2 + 2 * x * x);
    const double dy = lens.p1 * (r2 + 2 * y * y) + 2 * lens.p2 * x * y;
    x = (xd - dx) / radial;
    y = (yd - dy) / radial;
  }
  return {x, y};
}

std::vector<Shot> make_shots(const CaptureOptions& options) {
  // Heights and distances of the rings: low ones see the horizon, high ones look down.
  constexpr double kHeights[3] = {1.45, 2.05, 2.85}, kDistances[3] = {4.1, 3.85, 3.35};
  const uint32_t n_rings = options.n_views >= 24 ? 3 : options.n_views >= 8 ? 2 : 1;
  std::vector<Shot> shots(options.n_views);
  for (uint32_t i = 0; i < options.n_views; ++i) {
    const auto words = philox(options.seed, static_cast<uint32_t>(Stream::kCamera),
                              RandomPurpose::Synthetic, i, 0);
    const auto more = philox(options.seed, static_cast<uint32_t>(Stream::kCamera),
                             RandomPurpose::Synthetic, i, 1);
    const uint32_t ring = i % n_rings;
    const double angle = 2 * std::numbers::pi * (i + 0.3 * symmetric(words[0])) / options.n_views;
    const double distance = kDistances[ring] * (1 + 0.06 * symmetric(words[1]));
    const double height = kHeights[ring] + 0.15 * symmetric(words[2]);
    const Double3 centre = {distance * std::cos(angle), distance * std::sin(angle), height};
    const Double3 target = {0.15 * symmetric(words[3]), 0.15 * symmetric(more[0]),
                            0.3 + 0.1 * symmetric(more[1])};
    Shot& shot = shots[i];
    shot.name = fmt::format("IMG_{:04}.jpg", i + 1);
    look_at(shot, centre, target, 0.035 * symmetric(more[2]));
    if (options.exposure) {
      const auto light = philox(options.seed, static_cast<uint32_t>(Stream::kExposure),
                                RandomPurpose::Synthetic, i);
      shot.ev = 0.7 * symmetric(light[0]);
      // Warm to cold (red against blue) and a little green to magenta.
      const double warmth = 0.16 * symmetric(light[1]), tint = 0.05 * symmetric(light[2]);
      shot.white_balance = {std::exp2(warmth), std::exp2(tint), std::exp2(-warmth)};
    }
  }
  return shots;
}

}  // namespace millrace::synth
