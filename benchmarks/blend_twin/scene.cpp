#include "blend_twin/scene.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "kernels/tile_cover.h"

namespace millrace::blend_twin {
namespace {

constexpr uint32_t kTilePixels = kTileSize * kTileSize;

// A number in (0, 1) that depends on the index and the channel alone.
float uniform(uint64_t index, uint32_t channel) {
  uint64_t x = index * 0x9E3779B97F4A7C15ull + channel * 0xD1B54A32D192ED03ull + 1;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  x ^= x >> 31;
  return (static_cast<float>(x >> 41) + 0.5f) / static_cast<float>(1 << 23);
}
float normal(uint64_t index, uint32_t channel) {
  const float radius = std::sqrt(-2.0f * std::log(uniform(index, channel)));
  return radius * std::cos(2.0f * std::numbers::pi_v<float> * uniform(index, channel + 1));
}

Projected make_gaussian(uint32_t i, uint32_t width, uint32_t height) {
  Projected g = {};
  g.x = (1.1f * uniform(i, 0) - 0.05f) * static_cast<float>(width);
  g.y = (1.1f * uniform(i, 1) - 0.05f) * static_cast<float>(height);
  // Standard deviations in pixels: log-normal, the longer axis about twice the shorter one.
  const float longer = 5.0f * std::exp(0.8f * normal(i, 2));
  const float shorter = std::max(0.55f, longer * (0.15f + 0.7f * uniform(i, 4)));
  const float angle = std::numbers::pi_v<float> * uniform(i, 5);
  const float c = std::cos(angle), s = std::sin(angle);
  const float l2 = longer * longer, s2 = shorter * shorter;
  const float xx = c * c * l2 + s * s * s2, yy = s * s * l2 + c * c * s2, xy = c * s * (l2 - s2);
  // conic = F F^T with F = (a 0; b c): a^2 = yy/det, a b = -xy/det, c^2 = 1/yy.
  const float det = l2 * s2;
  g.a = std::sqrt(yy / det);
  g.b = -xy / (det * g.a);
  g.c = 1.0f / std::sqrt(yy);
  g.opacity = 0.02f + 0.97f * uniform(i, 6) * uniform(i, 7);
  g.red = 1.2f * uniform(i, 8);
  g.green = 1.2f * uniform(i, 9);
  g.blue = 1.2f * uniform(i, 10);
  g.depth = 1.0f + 9.0f * uniform(i, 11);
  const float r2 = 2.0f * std::log(255.0f * g.opacity);
  g.extent_x = std::sqrt(r2 * xx);
  g.extent_y = std::sqrt(r2 * yy);
  return g;
}

}  // namespace

Scene make_scene(uint32_t n, uint32_t width, uint32_t height) {
  Scene scene;
  scene.width = width;
  scene.height = height;
  scene.tiles_x = (width + kTileSize - 1) / kTileSize;
  scene.tiles_y = (height + kTileSize - 1) / kTileSize;
  scene.projected.resize(n);
  for (uint32_t i = 0; i < n; ++i) scene.projected[i] = make_gaussian(i, width, height);

  std::vector<uint32_t> by_depth(n);
  std::iota(by_depth.begin(), by_depth.end(), 0u);
  std::ranges::stable_sort(by_depth, {}, [&](uint32_t row) { return scene.projected[row].depth; });
  const uint32_t n_tiles = scene.tiles_x * scene.tiles_y;
  std::vector<uint32_t> tiles(n_tiles), first_slot(n + 1);
  std::vector<std::vector<uint32_t>> lists(n_tiles);
  for (uint32_t row = 0; row < n; ++row) {
    const Projected& g = scene.projected[row];
    const uint32_t n_covered = kernels::cover_tiles(g, scene.tiles_x, scene.tiles_y, tiles.data());
    first_slot[row + 1] = first_slot[row] + n_covered;
    scene.instance_row.insert(scene.instance_row.end(), n_covered, row);
  }
  for (const uint32_t row : by_depth) {
    const Projected& g = scene.projected[row];
    const uint32_t n_covered = kernels::cover_tiles(g, scene.tiles_x, scene.tiles_y, tiles.data());
    for (uint32_t k = 0; k < n_covered; ++k) lists[tiles[k]].push_back(first_slot[row] + k);
  }
  for (const std::vector<uint32_t>& list : lists) {
    scene.tile_ranges.push_back(static_cast<uint32_t>(scene.sorted_slots.size()));
    scene.sorted_slots.insert(scene.sorted_slots.end(), list.begin(), list.end());
    scene.tile_ranges.push_back(static_cast<uint32_t>(scene.sorted_slots.size()));
  }

  const uint64_t n_pixels = uint64_t{width} * height;
  scene.d_image.resize(3 * n_pixels);
  for (uint64_t i = 0; i < 3 * n_pixels; ++i) scene.d_image[i] = uniform(i, 20) - 0.5f;
  scene.error_map.resize(n_pixels);
  for (uint64_t i = 0; i < n_pixels; ++i) scene.error_map[i] = uniform(i, 21);
  scene.step.transaction = 7;
  scene.control.gate.accepted = 7;
  scene.control.counts.rows = n;
  scene.control.counts.instances = scene.sorted_slots.size();
  const float background[3] = {0.2f, 0.5f, 0.9f};
  std::copy_n(background, 3, scene.step.background);
  return scene;
}

TileResult blend_tile(const Scene& scene, uint32_t tile) {
  const uint32_t begin = scene.tile_ranges[2 * tile], end = scene.tile_ranges[2 * tile + 1];
  const uint32_t x0 = tile % scene.tiles_x * kTileSize, y0 = tile / scene.tiles_x * kTileSize;
  const uint64_t n_pixels = uint64_t{scene.width} * scene.height;
  struct Blended {
    uint32_t entry;
    double y1, y2, falloff, alpha, before;
    bool moves;
  };
  TileResult result;
  result.gradients.resize(end - begin);
  std::vector<Blended> walked;
  for (uint32_t local = 0; local < kTilePixels; ++local) {
    const uint32_t x = x0 + local % kTileSize, y = y0 + local / kTileSize;
    if (x >= scene.width || y >= scene.height) continue;
    double transmittance = 1.0, color[3] = {};
    walked.clear();
    for (uint32_t e = begin; e < end && transmittance >= kTransmittanceMin; ++e) {
      const Projected& g = scene.projected[scene.instance_row[scene.sorted_slots[e]]];
      const double dx = g.x - (x + 0.5), dy = g.y - (y + 0.5);
      const double y1 = g.a * dx + g.b * dy, y2 = g.c * dy;
      const double falloff = std::exp(-0.5 * (y1 * y1 + y2 * y2)), raw = g.opacity * falloff;
      if (raw < kAlphaMin) continue;
      const double alpha = std::min<double>(raw, kAlphaMax), weight = alpha * transmittance;
      walked.push_back({e - begin, y1, y2, falloff, alpha, transmittance, raw < kAlphaMax});
      color[0] += weight * g.red;
      color[1] += weight * g.green;
      color[2] += weight * g.blue;
      transmittance -= weight;
    }
    result.pairs += walked.size();
    double d_color[3], behind = 0.0;
    const uint64_t pixel = uint64_t{y} * scene.width + x;
    for (uint32_t c = 0; c < 3; ++c) {
      result.image[c * kTilePixels + local] = color[c] + transmittance * scene.step.background[c];
      d_color[c] = scene.d_image[c * n_pixels + pixel];
      behind += d_color[c] * scene.step.background[c];
    }
    const double error = scene.error_map[pixel];
    for (auto it = walked.rbegin(); it != walked.rend(); ++it) {
      const Projected& g =
          scene.projected[scene.instance_row[scene.sorted_slots[begin + it->entry]]];
      const double weight = it->before * it->alpha;
      const double g_color = g.red * d_color[0] + g.green * d_color[1] + g.blue * d_color[2];
      const double d_alpha = it->moves ? it->before * (g_color - behind) : 0.0;
      const double h = -it->alpha * d_alpha, hy1 = h * it->y1, hy2 = h * it->y2;
      const double parts[kGradientFields] = {g.a * hy1,           g.b * hy1 + g.c * hy2,
                                             0.5 * hy1 * it->y1,  0.5 * hy1 * it->y2,
                                             0.5 * hy2 * it->y2,  it->falloff * d_alpha,
                                             weight * d_color[0], weight * d_color[1],
                                             weight * d_color[2], weight,
                                             weight * error,      0.0};
      for (uint32_t i = 0; i < kGradientFields; ++i) result.gradients[it->entry][i] += parts[i];
      behind += it->alpha * (g_color - behind);
    }
  }
  return result;
}

}  // namespace millrace::blend_twin
