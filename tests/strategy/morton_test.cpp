// Morton order: a permutation of whole rows, sorted by code, that no image shows.
#include "strategy/morton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "strategy/strategy_bench.h"

namespace millrace::test {
namespace {

constexpr uint32_t kRows = 5000;  // more than one task

double opacity_of(uint32_t row) { return 0.05 + 0.9 * (row % 97) / 97.0; }

void reorder(Bench& bench, uint32_t epoch = 0) {
  StepBlock block = mcmc_block(6, kRows);
  block.epoch = epoch;
  const Tensor step = upload_step_block(*bench.device, block);
  decide(bench.model, step, false);
  morton_reorder(bench.model, step);
  commit(bench.model, step, CommitMode::Other);
}

// A row with its moments as one list of numbers.
std::vector<float> whole_row(const Rows& rows, uint64_t row) {
  std::vector<float> all;
  for (int i = 0; i < 6; ++i) {
    const auto part = rows.row_of(i, row);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// The code bit by bit: bit 3 b + k is bit b of coordinate k in 1024ths of the bounding box.
uint32_t morton_code(const Rows& rows, uint64_t row, const float (&low)[3],
                     const float (&high)[3]) {
  uint32_t code = 0;
  for (uint32_t k = 0; k < 3; ++k) {
    const float unit = (rows.geometry(row, k) - low[k]) / (high[k] - low[k]);
    const auto cell = static_cast<uint32_t>(std::clamp(unit * 1024, 0.0f, 1023.0f));
    for (uint32_t bit = 0; bit < 10; ++bit) code |= (cell >> bit & 1) << (3 * bit + k);
  }
  return code;
}

TEST(MortonOrder, IsAPermutationThatCarriesAllGroupsTogether) {
  Bench bench(make_cloud(kRows, 1, opacity_of), 5120);
  const Rows before = bench.rows_blocking();
  reorder(bench);
  const Rows after = bench.rows_blocking();
  ASSERT_EQ(after.count(), kRows);
  EXPECT_FALSE(same_rows(before, after));
  std::multiset<std::vector<float>> a, b;
  for (uint64_t row = 0; row < kRows; ++row) {
    a.insert(whole_row(before, row));
    b.insert(whole_row(after, row));
  }
  EXPECT_TRUE(a == b);
}

TEST(MortonOrder, RisesAlongTheRows) {
  Bench bench(make_cloud(kRows, 1, opacity_of), 5120);
  reorder(bench);
  const Rows after = bench.rows_blocking();
  float low[3] = {1e9f, 1e9f, 1e9f}, high[3] = {-1e9f, -1e9f, -1e9f};
  for (uint64_t row = 0; row < kRows; ++row) {
    for (uint32_t k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], after.geometry(row, k));
      high[k] = std::max(high[k], after.geometry(row, k));
    }
  }
  std::vector<uint32_t> codes;
  for (uint64_t row = 0; row < kRows; ++row) codes.push_back(morton_code(after, row, low, high));
  EXPECT_TRUE(std::ranges::is_sorted(codes));
  EXPECT_GT(std::set<uint32_t>(codes.begin(), codes.end()).size(), kRows / 2);
}

TEST(MortonOrder, IsStableSoThatASecondReorderingChangesNothing) {
  GaussianCloud cloud = make_cloud(kRows, 1, opacity_of);
  // Many rows at one place: ties by row.
  for (uint32_t i = 0; i < kRows; i += 3) std::fill_n(&cloud.means[3 * i], 3, 0.25f);
  Bench bench(cloud, 5120);
  reorder(bench);
  const Rows once = bench.rows_blocking();
  StepBlock block = mcmc_block(10, kRows);
  const Tensor step = upload_step_block(*bench.device, block);
  decide(bench.model, step, false);
  morton_reorder(bench.model, step);
  commit(bench.model, step, CommitMode::Other);
  const Rows twice = bench.rows_blocking();
  EXPECT_EQ(twice.control.gate.committed, 10u);
  EXPECT_TRUE(same_rows(once, twice));
}

TEST(MortonOrder, ChangesNothingBehindAClosedGate) {
  Bench bench(make_cloud(kRows, 1, opacity_of), 5120);
  const Rows before = bench.rows_blocking();
  reorder(bench, /*epoch=*/1);
  EXPECT_TRUE(same_rows(before, bench.rows_blocking()));
}

TEST(MortonOrder, TakesMeansThatAreNotNumbersAndFlatClouds) {
  GaussianCloud cloud = make_cloud(100, 2, opacity_of);
  cloud.means[3 * 17] = std::nanf("");
  cloud.means[3 * 18 + 1] = INFINITY;
  for (uint32_t i = 0; i < 100; ++i) cloud.means[3 * i + 2] = 1;  // no extent along z
  Bench bench(cloud, 128);
  reorder(bench);
  const Rows after = bench.rows_blocking();
  EXPECT_EQ(after.control.gate.committed, 6u);
  int n_nan = 0, n_inf = 0;
  for (uint64_t row = 0; row < 100; ++row) {
    n_nan += std::isnan(after.geometry(row, 0));
    n_inf += std::isinf(after.geometry(row, 1));
  }
  EXPECT_EQ(n_nan, 1);
  EXPECT_EQ(n_inf, 1);
}

std::vector<float> image_of_blocking(Bench& bench) {
  constexpr uint32_t kWidth = 80, kHeight = 64;
  CameraRecord camera = {};
  camera.rotation[0] = camera.rotation[4] = camera.rotation[8] = 1;
  camera.translation[2] = 4;
  camera.centre[2] = -4;
  camera.fx = camera.fy = 90;
  camera.cx = kWidth / 2.0f;
  camera.cy = kHeight / 2.0f;
  camera.near_plane = 0.01f;
  camera.width = kWidth;
  camera.height = kHeight;
  const FrameSize size = {kWidth, kHeight};
  Workspace workspace;
  workspace.rows = make_row_buffers(*bench.device, bench.model.row_capacity);
  workspace.pixels = make_pixel_buffers(*bench.device, {size}, {});
  workspace.instances =
      make_instance_buffers(*bench.device, 200000, workspace.pixels.n_tiles, false);
  const Tensor cameras = make_camera_table(*bench.device, {camera});
  StepBlock block = mcmc_block(1000, kRows);
  block.sh_degree = 1;
  const Tensor step = upload_step_block(*bench.device, block);
  render_forward({bench.model, cameras, step, workspace, size, 0, false});
  const Ticket image = read_later(workspace.pixels.image),
               control = read_later(bench.model.control);
  bench.device->wait_blocking(bench.device->submit(), {WaitReason::Test, "test.image"}).or_raise();
  EXPECT_EQ(control.as<Control>().gate.closed, 0u);
  const auto* pixels = reinterpret_cast<const float*>(image.bytes().data());
  return {pixels, pixels + 3 * kWidth * kHeight};
}

TEST(MortonOrder, LeavesTheImageUnchanged) {
  Bench bench(make_cloud(kRows, 1, opacity_of), 5120);
  const std::vector<float> before = image_of_blocking(bench);
  reorder(bench);
  const std::vector<float> after = image_of_blocking(bench);
  EXPECT_GT(*std::ranges::max_element(before), 0.3f);
  // Depths differ from row to row here, so that the order of blending and every bit stay the same.
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace millrace::test
