// cover_tiles against a test of every pixel in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/philox.h"
#include "kernels/tile_cover.h"

namespace millrace::test {
namespace {

constexpr uint32_t kTilesX = 7, kTilesY = 5;
constexpr uint32_t kTiles = kTilesX * kTilesY;

// An ellipse by standard deviations along two axes [px], angle and centre.
struct Ellipse {
  double x, y, sigma_u, sigma_v, angle, opacity;
};

// As projection makes it: dilated covariance, Cholesky factor of its inverse, half extents of the
// ellipse.
Projected project(const Ellipse& e) {
  const double cos = std::cos(e.angle), sin = std::sin(e.angle);
  const double uu = e.sigma_u * e.sigma_u, vv = e.sigma_v * e.sigma_v;
  const double a = cos * cos * uu + sin * sin * vv + kDilation;
  const double b = cos * sin * (uu - vv);
  const double c = sin * sin * uu + cos * cos * vv + kDilation;
  const double det = uu * vv + kDilation * (uu + vv) + double{kDilation} * kDilation;
  Projected p = {};
  p.x = static_cast<float>(e.x);
  p.y = static_cast<float>(e.y);
  p.a = static_cast<float>(std::sqrt(c / det));
  p.b = static_cast<float>(-b / std::sqrt(c * det));
  p.c = static_cast<float>(1 / std::sqrt(c));
  p.opacity = static_cast<float>(e.opacity);
  const double r2 = std::max(2 * std::log(255 * e.opacity), 0.0);
  p.extent_x = static_cast<float>(std::sqrt(r2 * a));
  p.extent_y = static_cast<float>(std::sqrt(r2 * c));
  return p;
}

// Tiles with a pixel centre where the exponent is at most `limit` (ln(255 o) is the ellipse
// itself).
std::set<uint32_t> tiles_by_pixel(const Projected& p, double limit) {
  std::set<uint32_t> tiles;
  for (uint32_t y = 0; y < kTilesY * kTileSize; ++y) {
    for (uint32_t x = 0; x < kTilesX * kTileSize; ++x) {
      const double dx = p.x - (x + 0.5), dy = p.y - (y + 0.5);
      const double u = p.a * dx + p.b * dy, v = p.c * dy;
      if (0.5 * (u * u + v * v) <= limit) tiles.insert(y / kTileSize * kTilesX + x / kTileSize);
    }
  }
  return tiles;
}

std::vector<uint32_t> emitted(const Projected& p) {
  constexpr uint32_t kUnused = ~0u;
  std::vector<uint32_t> tiles(kTiles + 1, kUnused);
  const uint32_t n = kernels::cover_tiles(p, kTilesX, kTilesY, nullptr);
  EXPECT_LE(n, kTiles);
  EXPECT_EQ(kernels::cover_tiles(p, kTilesX, kTilesY, tiles.data()), n) << "count and emit differ";
  EXPECT_EQ(std::ranges::count(tiles, kUnused), static_cast<ptrdiff_t>(kTiles + 1 - n));
  tiles.resize(n);
  return tiles;
}

Ellipse random_ellipse(uint32_t i) {
  const auto a = philox(5, i, RandomPurpose::Synthetic, 0),
             b = philox(5, i, RandomPurpose::Synthetic, 1);
  const auto u = [](uint32_t word) { return double{uniform_open(word)}; };
  Ellipse e = {};
  e.x = -30 + u(a[0]) * (kTilesX * kTileSize + 60);
  e.y = -30 + u(a[1]) * (kTilesY * kTileSize + 60);
  e.sigma_u = std::pow(10, -2 + 4 * u(a[2]));          // 0.01 to 100 px
  e.sigma_v = e.sigma_u * std::pow(10, -4 * u(a[3]));  // down to needles of 1 : 10,000
  e.angle = 6.283185307 * u(b[0]);
  e.opacity = i % 4 == 0 ? 1 / 255.0 + 0.01 * u(b[1]) : 0.005 + 0.99 * u(b[1]);
  return e;
}

TEST(TileCover, CountsAndEmitsTheTilesThatAPixelTestFinds) {
  constexpr uint32_t kEllipses = 4000;
  uint64_t n_found = 0, n_extra = 0, n_hit = 0;
  for (uint32_t i = 0; i < kEllipses; ++i) {
    const Projected p = project(random_ellipse(i));
    const std::vector<uint32_t> list = emitted(p);
    const std::set<uint32_t> got(list.begin(), list.end());
    ASSERT_EQ(got.size(), list.size()) << "a tile twice, ellipse " << i;
    const double tau = std::log(255.0 * p.opacity);
    // No tile with a contributing pixel may be missing; rounding of the exponent is 1e-4 at most.
    const std::set<uint32_t> needed = tiles_by_pixel(p, tau - 1e-4 * (1 + tau));
    ASSERT_TRUE(std::ranges::includes(got, needed)) << "a tile is missing, ellipse " << i;
    n_found += needed.size();
    n_hit += needed.empty() ? 0 : 1;
    n_extra += got.size() - needed.size();
  }
  EXPECT_GT(n_hit, kEllipses / 3);
  // The interval test knows strips, not pixels: thin needles that slip between pixel centres cost a
  // few tiles.
  EXPECT_LT(static_cast<double>(n_extra), 0.05 * static_cast<double>(n_found));
}

TEST(TileCover, RoundGaussiansGetExactlyTheTilesOfThePixelTest) {
  for (uint32_t i = 0; i < 1000; ++i) {
    Ellipse e = random_ellipse(i);
    e.sigma_u = e.sigma_v = 1.5 + 20 * e.opacity;
    const Projected p = project(e);
    const std::vector<uint32_t> list = emitted(p);
    const double tau = std::log(255.0 * p.opacity);
    const std::set<uint32_t> got(list.begin(), list.end());
    // What is listed beyond the pixels inside lies within the slack of 1/64 px around the ellipse,
    // or meets the strip between two pixel centres: a disc's chord that is shorter than a pixel.
    EXPECT_TRUE(std::ranges::includes(got, tiles_by_pixel(p, tau - 1e-4))) << i;
    const double reach = std::sqrt(2 * tau) + 1.0 / 1.5;
    EXPECT_TRUE(std::ranges::includes(tiles_by_pixel(p, 0.5 * reach * reach), got)) << i;
  }
}

TEST(TileCover, AGaussianOffTheScreenHasNoTiles) {
  for (const double x : {-100.0, kTilesX * kTileSize + 100.0}) {
    EXPECT_TRUE(emitted(project({x, 40, 5, 5, 0, 0.9})).empty());
    EXPECT_TRUE(emitted(project({40, x, 5, 5, 0, 0.9})).empty());
  }
  EXPECT_TRUE(emitted(project({1e30, 40, 5, 5, 0, 0.9})).empty());
  EXPECT_TRUE(emitted(project({40, -1e30, 5, 5, 0, 0.9})).empty());
}

TEST(TileCover, AHugeGaussianHasEveryTileOnce) {
  for (const double sigma : {1e3, 1e6, 1e9}) {
    const std::vector<uint32_t> tiles = emitted(project({50, 40, sigma, sigma, 0.3, 0.9}));
    EXPECT_EQ(std::set<uint32_t>(tiles.begin(), tiles.end()).size(), kTiles) << sigma;
  }
}

TEST(TileCover, AnOpacityAtTheThresholdCoversAtMostTheTileOfItsCentre) {
  const Projected p = project({40.5, 40.5, 10, 10, 0, kAlphaMin});
  EXPECT_LE(emitted(p).size(), 1u);
}

}  // namespace
}  // namespace millrace::test
