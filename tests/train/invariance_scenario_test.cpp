// Training does not depend on the unit and the orientation of the world.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <sstream>

#include "base/file.h"
#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

namespace fs = std::filesystem;
using Quaternion = std::array<double, 4>;  // w, x, y, z

/// x' = scale R x.
struct Similarity {
  double scale = 1;
  Quaternion rotation = {1, 0, 0, 0};
};

Quaternion multiply(const Quaternion& a, const Quaternion& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
          a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
          a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}
Quaternion conjugate(const Quaternion& q) { return {q[0], -q[1], -q[2], -q[3]}; }

std::array<double, 3> moved_point(const Similarity& s, const std::array<double, 3>& x) {
  const Quaternion r = multiply(multiply(s.rotation, {0, x[0], x[1], x[2]}), conjugate(s.rotation));
  return {s.scale * r[1], s.scale * r[2], s.scale * r[3]};
}

std::string rest_of(std::istringstream& fields) {
  std::string rest;
  std::getline(fields, rest);
  return rest;
}

// Copies the tiny capture with its COLMAP text model moved by `s`.
fs::path moved_capture(const std::string& name, const Similarity& s) {
  const fs::path folder = scratch_folder() / name, model = "sparse/0";
  fs::remove_all(folder);
  fs::create_directories(folder / model);
  fs::create_directory_symlink(tiny_capture() / "images", folder / "images");
  fs::copy(tiny_capture() / model / "cameras.txt", folder / model / "cameras.txt");

  std::istringstream images(read_text_file(tiny_capture() / model / "images.txt").or_raise());
  std::ostringstream moved;
  moved.precision(17);
  bool is_pose = true;  // poses and keypoints take turns
  for (std::string line; std::getline(images, line);) {
    if (line.starts_with('#') || !is_pose) {
      moved << line << "\n";
      is_pose |= !line.starts_with('#');
      continue;
    }
    std::istringstream fields(line);
    uint32_t id;
    Quaternion q;
    std::array<double, 3> t;
    fields >> id >> q[0] >> q[1] >> q[2] >> q[3] >> t[0] >> t[1] >> t[2];
    const Quaternion turned = multiply(q, conjugate(s.rotation));
    moved << id;
    for (const double value : turned) moved << " " << value;
    for (const double value : t) moved << " " << s.scale * value;
    moved << rest_of(fields) << "\n";
    is_pose = false;
  }
  write_file_atomically(folder / model / "images.txt", moved.str()).or_raise();

  std::istringstream points(read_text_file(tiny_capture() / model / "points3D.txt").or_raise());
  std::ostringstream moved_points;
  moved_points.precision(17);
  for (std::string line; std::getline(points, line);) {
    if (line.starts_with('#')) {
      moved_points << line << "\n";
      continue;
    }
    std::istringstream fields(line);
    uint64_t id;
    std::array<double, 3> x;
    fields >> id >> x[0] >> x[1] >> x[2];
    moved_points << id;
    for (const double value : moved_point(s, x)) moved_points << " " << value;
    moved_points << rest_of(fields) << "\n";
  }
  write_file_atomically(folder / model / "points3D.txt", moved_points.str()).or_raise();
  return folder;
}

// Mean PSNR over seeds.
double psnr_of(const fs::path& capture, std::initializer_list<uint64_t> seeds) {
  double sum = 0;
  for (const uint64_t seed : seeds) {
    TrainOptions options = tiny_options(250);
    options.dataset = capture.string();
    options.seed = seed;
    options.refine_every = 50;
    options.sh_degree_interval = 100;
    options.morton_interval = 0;
    options.test_every = 3;
    sum += train_or_fail(options).psnr;
  }
  return sum / static_cast<double>(seeds.size());
}

TEST(WorldInvariance, AWorldAHundredTimesSmallerTrainsToTheSamePsnr) {
  EXPECT_NEAR(psnr_of(moved_capture("small", {0.01, {1, 0, 0, 0}}), {1, 2}),
              psnr_of(tiny_capture(), {1, 2}), 0.05);
}

TEST(WorldInvariance, AWorldAHundredTimesLargerTrainsToTheSamePsnr) {
  EXPECT_NEAR(psnr_of(moved_capture("large", {100, {1, 0, 0, 0}}), {1, 2}),
              psnr_of(tiny_capture(), {1, 2}), 0.05);
}

// Noise is another realisation there, and Adam takes its steps along the world's axes: single runs
// of this size differ by 0.1 to 0.4 dB to either side, as runs of other seeds do.
TEST(WorldInvariance, ATurnedWorldTrainsToTheSamePsnr) {
  const double norm = std::sqrt(0.6 * 0.6 + 0.5 * 0.5 + 0.4 * 0.4 + 0.3 * 0.3);
  const Similarity turn = {1, {0.6 / norm, 0.5 / norm, -0.4 / norm, 0.3 / norm}};
  EXPECT_NEAR(psnr_of(moved_capture("turned", turn), {1, 2, 3, 4}),
              psnr_of(tiny_capture(), {1, 2, 3, 4}), 0.3);
}

}  // namespace
}  // namespace millrace::test
