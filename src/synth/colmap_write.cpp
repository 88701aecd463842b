// COLMAP's model formats as its documentation gives them (output format, text and binary).
#include "synth/colmap_write.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <iterator>

namespace millrace::synth {

namespace {

static_assert(std::endian::native == std::endian::little,
              "COLMAP's binary files are little-endian");

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

int32_t model_id(const Lens& lens) { return lens.kind == LensKind::OpenCv ? 4 : 1; }

std::vector<double> parameters(const Lens& lens) {
  std::vector<double> out = {lens.fx, lens.fy, lens.cx, lens.cy};
  if (lens.kind == LensKind::OpenCv) out.insert(out.end(), {lens.k1, lens.k2, lens.p1, lens.p2});
  return out;
}

// Unit quaternion w, x, y, z (w >= 0) of the rotation rows of a world-to-camera matrix. The largest
// component is computed first, so that no division is by a small number.
std::array<double, 4> quaternion(const std::array<double, 12>& m) {
  const double xx = m[0], yy = m[5], zz = m[10];
  const std::array<double, 4> squares = {1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz,
                                         1 - xx - yy + zz};
  size_t largest = 0;
  for (size_t k = 1; k < 4; ++k) largest = squares[k] > squares[largest] ? k : largest;
  const double twice = std::sqrt(squares[largest]);  // 2 |q[largest]|
  const double s = 0.5 / twice;
  const double wx = (m[9] - m[6]) * s, wy = (m[2] - m[8]) * s, wz = (m[4] - m[1]) * s;
  const double xy = (m[1] + m[4]) * s, xz = (m[2] + m[8]) * s, yz = (m[6] + m[9]) * s;
  std::array<double, 4> q = {};
  switch (largest) {
    case 0:
      q = {twice / 2, wx, wy, wz};
      break;
    case 1:
      q = {wx, twice / 2, xy, xz};
      break;
    case 2:
      q = {wy, xy, twice / 2, yz};
      break;
    default:
      q = {wz, xz, yz, twice / 2};
      break;
  }
  if (q[0] < 0) {
    for (double& c : q) c = -c;
  }
  return q;
}

std::array<double, 3> translation(const std::array<double, 12>& m) { return {m[3], m[7], m[11]}; }

}  // namespace

ModelFiles colmap_binary(const ColmapModel& model) {
  std::string cameras;
  put<uint64_t>(cameras, 1);
  put<uint32_t>(cameras, 1);
  put<int32_t>(cameras, model_id(model.lens));
  put<uint64_t>(cameras, model.lens.width);
  put<uint64_t>(cameras, model.lens.height);
  for (const double value : parameters(model.lens)) put(cameras, value);

  std::string images;
  put<uint64_t>(images, model.shots.size());
  for (size_t i = 0; i < model.shots.size(); ++i) {
    const Shot& shot = model.shots[i];
    put<uint32_t>(images, static_cast<uint32_t>(i + 1));
    for (const double value : quaternion(shot.world_to_camera)) put(images, value);
    for (const double value : translation(shot.world_to_camera)) put(images, value);
    put<uint32_t>(images, 1);
    images.append(shot.name.c_str(), shot.name.size() + 1);
    put<uint64_t>(images, model.keypoints[i].size());
    for (const Keypoint& keypoint : model.keypoints[i]) {
      put(images, keypoint.x);
      put(images, keypoint.y);
      put<uint64_t>(images, keypoint.point == kUnmatched ? kUnmatched : keypoint.point + 1);
    }
  }

  std::string points;
  put<uint64_t>(points, model.points.size());
  for (size_t i = 0; i < model.points.size(); ++i) {
    const SfmPoint& point = model.points[i];
    put<uint64_t>(points, i + 1);
    for (const double value : point.position) put(points, value);
    for (const uint8_t value : point.color()) put(points, value);
    put(points, point.error_px);
    put<uint64_t>(points, point.track.size());
    for (const Observation& seen : point.track) {
      put<uint32_t>(points, seen.view + 1);
      put<uint32_t>(points, seen.slot);
    }
  }
  return {{"cameras.bin", std::move(cameras)},
          {"images.bin", std::move(images)},
          {"points3D.bin", std::move(points)}};
}

ModelFiles colmap_text(const ColmapModel& model) {
  std::string cameras =
      "# Camera list with one line of data per camera:\n#   CAMERA_ID, MODEL, WIDTH, "
      "HEIGHT, PARAMS[]\n# Number of cameras: 1\n";
  auto to = std::back_inserter(cameras);
  const char* name = model.lens.kind == LensKind::OpenCv ? "OPENCV" : "PINHOLE";
  fmt::format_to(to, "1 {} {} {}", name, model.lens.width, model.lens.height);
  for (const double value : parameters(model.lens)) fmt::format_to(to, " {}", value);
  cameras += '\n';

  std::string images =
      "# Image list with two lines of data per image:\n#   IMAGE_ID, QW, QX, QY, QZ, TX, "
      "TY, TZ, CAMERA_ID, NAME\n#   POINTS2D[] as (X, Y, POINT3D_ID)\n";
  to = std::back_inserter(images);
  fmt::format_to(to, "# Number of images: {}\n", model.shots.size());
  for (size_t i = 0; i < model.shots.size(); ++i) {
    const Shot& shot = model.shots[i];
    fmt::format_to(to, "{}", i + 1);
    for (const double value : quaternion(shot.world_to_camera)) fmt::format_to(to, " {}", value);
    for (const double value : translation(shot.world_to_camera)) fmt::format_to(to, " {}", value);
    fmt::format_to(to, " 1 {}\n", shot.name);
    const char* gap = "";
    for (const Keypoint& keypoint : model.keypoints[i]) {
      const int64_t id =
          keypoint.point == kUnmatched ? -1 : static_cast<int64_t>(keypoint.point + 1);
      fmt::format_to(to, "{}{} {} {}", gap, keypoint.x, keypoint.y, id);
      gap = " ";
    }
    images += '\n';
  }

  std::string points =
      "# 3D point list with one line of data per point:\n#   POINT3D_ID, X, Y, Z, R, G, B, "
      "ERROR, TRACK[] as (IMAGE_ID, POINT2D_IDX)\n";
  to = std::back_inserter(points);
  fmt::format_to(to, "# Number of points: {}\n", model.points.size());
  for (size_t i = 0; i < model.points.size(); ++i) {
    const SfmPoint& point = model.points[i];
    const auto color = point.color();
    fmt::format_to(to, "{} {} {} {} {} {} {} {}", i + 1, point.position[0], point.position[1],
                   point.position[2], color[0], color[1], color[2], point.error_px);
    for (const Observation& seen : point.track)
      fmt::format_to(to, " {} {}", seen.view + 1, seen.slot);
    points += '\n';
  }
  return {{"cameras.txt", std::move(cameras)},
          {"images.txt", std::move(images)},
          {"points3D.txt", std::move(points)}};
}

}  // namespace millrace::synth
