// The scene of HotFrame and the calls of the hot kernels.
#include "kernels/hot_frame.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.h"
#include "kernels/tile_cover.h"

namespace millrace::test {
namespace {

constexpr uint32_t kBlocks = (HotFrame::kRows + kRowBlock - 1) / kRowBlock;
constexpr uint32_t kBands = (HotFrame::kHeightPx + kLossBand - 1) / kLossBand;

float uniform(uint32_t i, uint32_t lane) {
  return uniform_open(philox(21, lane, RandomPurpose::Synthetic, i)[0]);
}

float logit(float p) { return std::log(p / (1 - p)); }

// Rows in front of a camera at the origin that looks along z; every ninth is not drawn.
void place_rows(HotFrame& f) {
  const CameraRecord& cam = f.camera;
  for (uint32_t row = 0; row < HotFrame::kRows; ++row) {
    const auto set = [&](uint32_t lane, float value) {
      f.geometry[row_index(row, lane, kGeometryLanes)] = value;
    };
    const auto u = [&](uint32_t lane) { return uniform(row, lane); };
    const float z = row % 9 == 0 ? -1.0f : 2 + 6 * u(0);
    const float x_px = -8 + (HotFrame::kWidthPx + 16) * u(1);
    const float y_px = -8 + (HotFrame::kHeightPx + 16) * u(2);
    set(kLaneMean, (x_px - cam.cx) / cam.fx * z);
    set(kLaneMean + 1, (y_px - cam.cy) / cam.fy * z);
    set(kLaneMean + 2, z);
    for (uint32_t k = 0; k < 3; ++k) {
      const float sigma_px = 0.4f * std::pow(30.0f, u(3) * u(4 + k));
      set(kLaneScale + k, std::log(sigma_px * std::abs(z) / cam.fx));
      set(kLaneSh0 + k, 3 * u(7 + k) - 1);
    }
    for (uint32_t k = 0; k < 4; ++k) set(kLaneRotation + k, 2 * u(10 + k) - 1);
    set(kLaneOpacity, logit(0.02f + 0.9f * u(14)));
    for (uint32_t lane = 0; lane < HotFrame::kRestLanes; ++lane) {
      f.sh_rest[row_index(row, lane, HotFrame::kRestLanes)] = 0.3f * (2 * u(20 + lane) - 1);
    }
  }
}

void fill_moments(std::vector<float>& first, std::vector<float>& second, uint32_t lane) {
  for (uint32_t i = 0; i < first.size(); ++i) {
    first[i] = 1e-3f * (2 * uniform(i, lane) - 1);
    second[i] = 1e-6f * uniform(i, lane + 1);
  }
}

}  // namespace

HotFrame HotFrame::make(const kernels::HotKernels& hot) {
  HotFrame f;
  f.camera.rotation[0] = f.camera.rotation[4] = f.camera.rotation[8] = 1;
  f.camera.fx = 40;
  f.camera.fy = 44;
  f.camera.cx = 20.3f;
  f.camera.cy = 17.8f;
  f.camera.near_plane = 0.1f;
  f.camera.width = kWidthPx;
  f.camera.height = kHeightPx;
  f.step.sh_degree = 3;
  for (int c = 0; c < 3; ++c) f.step.background[c] = 0.2f + 0.3f * static_cast<float>(c);
  f.step.rate_means = f.step.rate_scales = f.step.rate_rotations = 1e-3f;
  f.step.rate_opacities = f.step.rate_sh0 = f.step.rate_sh_rest = 1e-2f;
  f.step.inv_sqrt_bias2 = 1.5f;
  f.step.ssim_weight = 0.2f;
  f.step.opacity_reg = f.step.scale_reg = 0.01f;

  f.geometry.resize(row_floats(kRows, kGeometryLanes));
  f.geometry_first.resize(f.geometry.size());
  f.geometry_second.resize(f.geometry.size());
  f.sh_rest.resize(row_floats(kRows, kRestLanes));
  f.sh_first.resize(f.sh_rest.size());
  f.sh_second.resize(f.sh_rest.size());
  place_rows(f);
  fill_moments(f.geometry_first, f.geometry_second, 100);
  fill_moments(f.sh_first, f.sh_second, 102);
  for (uint32_t i = 0; i < 3 * kPixels; ++i) {
    const double wave = 0.5 + 0.3 * std::sin(0.3 * (i % kWidthPx) + 0.2 * (i / kWidthPx));
    f.target.push_back(static_cast<uint8_t>(255 * (0.8 * wave + 0.2 * uniform(i, 110))));
  }
  for (uint32_t i = 0; i < kPixels; ++i) f.error.push_back(uniform(i, 111));

  f.project(hot);
  f.list();
  f.blend_forward(hot);
  f.photometric_forward(hot);
  f.photometric_backward(hot);
  f.blend_backward(hot);
  f.accumulate(hot);
  return f;
}

void HotFrame::project(const kernels::HotKernels& hot) {
  projected.assign(kRows, {});
  n_tiles.assign(kRows, 0);
  depth_key.assign(kRows, 0);
  kernels::ProjectArgs args = {};
  args.step = &step;
  args.camera = &camera;
  args.geometry = geometry.data();
  args.sh_rest = sh_rest.data();
  args.sh_rest_lanes = kRestLanes;
  args.tiles_x = kTilesX;
  args.tiles_y = kTilesY;
  args.rows = kRows;
  args.projected = projected.data();
  args.n_tiles = n_tiles.data();
  args.depth_key = depth_key.data();
  for (uint32_t block = 0; block < kBlocks; ++block) hot.project_block(args, block);
}

void HotFrame::list() {
  std::vector<std::vector<uint32_t>> slots_of_tile(kTiles);
  std::vector<uint32_t> by_depth(kRows);
  std::iota(by_depth.begin(), by_depth.end(), 0u);
  std::ranges::stable_sort(by_depth, {}, [&](uint32_t row) { return depth_key[row]; });
  first_slot.assign(kRows, 0);
  instance_row.clear();
  for (const uint32_t row : by_depth) {
    if (n_tiles[row] == 0) continue;
    uint32_t tiles[kTiles];
    n_tiles[row] = kernels::cover_tiles(projected[row], kTilesX, kTilesY, tiles);
    first_slot[row] = static_cast<uint32_t>(instance_row.size());
    for (uint32_t i = 0; i < n_tiles[row]; ++i) {
      slots_of_tile[tiles[i]].push_back(static_cast<uint32_t>(instance_row.size()));
      instance_row.push_back(row);
    }
  }
  sorted_slots.clear();
  tile_ranges.clear();
  for (const std::vector<uint32_t>& slots : slots_of_tile) {
    tile_ranges.push_back(static_cast<uint32_t>(sorted_slots.size()));
    sorted_slots.insert(sorted_slots.end(), slots.begin(), slots.end());
    tile_ranges.push_back(static_cast<uint32_t>(sorted_slots.size()));
  }
}

kernels::BlendArgs HotFrame::blend_args() {
  kernels::BlendArgs args = {};
  args.step = &step;
  args.projected = projected.data();
  args.instance_row = instance_row.data();
  args.sorted_slots = sorted_slots.data();
  args.tile_ranges = tile_ranges.data();
  args.width = kWidthPx;
  args.height = kHeightPx;
  args.tiles_x = kTilesX;
  args.is_front = args.is_back = true;
  args.image = image.data();
  args.depth_alpha = depth_alpha.data();
  args.transmittance = transmittance.data();
  args.last = last.data();
  args.d_image = d_image.data();
  args.error_map = error.data();
  args.gradients = gradients.data();
  return args;
}

void HotFrame::blend_forward(const kernels::HotKernels& hot) {
  image.assign(3 * kPixels, 0);
  depth_alpha.assign(2 * kPixels, 0);
  transmittance.assign(kTiles * kTileSize * kTileSize, 0);
  last.assign(transmittance.size(), 0);
  const kernels::BlendArgs args = blend_args();
  for (uint32_t tile = 0; tile < kTiles; ++tile) hot.blend_forward_tile(args, tile);
}

void HotFrame::blend_backward(const kernels::HotKernels& hot) {
  gradients.assign(instance_row.size(), {});
  const kernels::BlendArgs args = blend_args();
  for (uint32_t tile = 0; tile < kTiles; ++tile) hot.blend_backward_tile(args, tile);
}

kernels::PhotometricArgs HotFrame::photometric_args() {
  return {image.data(),     target.data(), kWidthPx,      kHeightPx,
          step.ssim_weight, maps.data(),   d_image.data()};
}

void HotFrame::photometric_forward(const kernels::HotKernels& hot) {
  maps.assign(9 * kPixels, 0);
  sums.assign(3 * kBands * kLossSums, 0);
  const kernels::PhotometricArgs args = photometric_args();
  for (uint32_t i = 0; i < 3 * kBands; ++i) {
    hot.photometric_forward_band(args, i / kBands, i % kBands, sums.data() + kLossSums * i);
  }
}

void HotFrame::photometric_backward(const kernels::HotKernels& hot) {
  d_image.assign(3 * kPixels, 0);
  const kernels::PhotometricArgs args = photometric_args();
  for (uint32_t i = 0; i < 3 * kBands; ++i) {
    hot.photometric_backward_band(args, i / kBands, i % kBands);
  }
}

kernels::BackwardArgs HotFrame::backward_args() {
  kernels::BackwardArgs args = {};
  args.step = &step;
  args.camera = &camera;
  args.n_tiles = n_tiles.data();
  args.first_slot = first_slot.data();
  args.gradients = gradients.data();
  args.sh_rest_lanes = kRestLanes;
  args.rows = args.live = kRows;
  args.geometry = {geometry.data(), geometry_first.data(), geometry_second.data()};
  args.sh_rest = {sh_rest.data(), sh_first.data(), sh_second.data()};
  args.d_geometry = d_geometry.data();
  args.d_sh_rest = d_sh_rest.data();
  args.statistics = statistics.data();
  return args;
}

void HotFrame::accumulate(const kernels::HotKernels& hot) {
  d_geometry.assign(geometry.size(), 0);
  d_sh_rest.assign(sh_rest.size(), 0);
  const kernels::BackwardArgs args = backward_args();
  for (uint32_t block = 0; block < kBlocks; ++block) hot.backward_accumulate_block(args, block);
}

void HotFrame::adam(const kernels::HotKernels& hot) {
  skipped = 0;
  const kernels::BackwardArgs args = backward_args();
  for (uint32_t block = 0; block < kBlocks; ++block) skipped += hot.adam_block(args, block);
}

void HotFrame::backward_adam(const kernels::HotKernels& hot) {
  skipped = 0;
  statistics.assign(row_floats(kRows, kStatisticLanes), 0);
  const kernels::BackwardArgs args = backward_args();
  for (uint32_t block = 0; block < kBlocks; ++block) {
    skipped += hot.backward_adam_block(args, block);
  }
}

}  // namespace millrace::test
