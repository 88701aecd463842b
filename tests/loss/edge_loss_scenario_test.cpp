// The edge loss against a direct float64 computation and its finite differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "loss/loss_bench.h"
#include "loss/pixel_weights.h"

namespace millrace::test {
namespace {

struct Output {
  std::vector<float> d_image;
  LossTotals totals;
};

Output device_edge_loss(const LossCase& c, float before = 0) {
  LossBench bench(c.step, c.accepted);
  Device& device = *bench.device;
  const uint64_t n = c.n();
  const Tensor image = Tensor::from_host(device, c.image, Shape{3 * n}, "test");
  const Tensor target = Tensor::from_host(device, c.target, Shape{3 * n}, "test");
  const Tensor weight =
      c.weight.empty() ? Tensor() : Tensor::from_host(device, c.weight, Shape{n}, "test");
  const Tensor scratch = bench.full(2 * n, 7), d_image = bench.full(3 * n, before);
  const Tensor totals = bench.full(sizeof(LossTotals) / 4, 7);
  edge_loss({bench.step, bench.control, image, target, weight.defined() ? &weight : nullptr,
             scratch, d_image, totals, c.width, c.height});
  const Ticket tickets[] = {read_later(d_image), read_later(totals)};
  bench.wait_blocking();
  return {floats_of(tickets[0], 3 * n), tickets[1].as<LossTotals>()};
}

// TRAINING.md 4.5.
double reference(const LossCase& c, const std::vector<double>& image) {
  const int width = static_cast<int>(c.width), height = static_cast<int>(c.height);
  const auto at = [&](int x, int y) { return static_cast<size_t>(y * width + x); };
  const auto residual = [&](int x, int y) {
    constexpr double kLuma[3] = {0.2126, 0.7152, 0.0722};
    double r = 0;
    for (size_t k = 0; k < 3; ++k) {
      r += kLuma[k] * (image[k * c.n() + at(x, y)] - c.target[k * c.n() + at(x, y)] / 255.0);
    }
    return r;
  };
  const auto weight = [&](int x, int y) -> double {
    if (!c.weight.empty()) return c.weight[at(x, y)];
    const int edge = width > 10 && height > 10 ? 5 : 0;
    return x >= edge && y >= edge && x < width - edge && y < height - edge ? 1 : 0;
  };
  double sum = 0, total = 0;
  for (int y = 1; y + 1 < height; ++y) {
    for (int x = 1; x + 1 < width; ++x) {
      double gx = 0, gy = 0, m = weight(x, y);
      for (int j = -1; j <= 1; ++j) {
        for (int i = -1; i <= 1; ++i) {
          gx += i * (j == 0 ? 2 : 1) / 8.0 * residual(x + i, y + j);
          gy += j * (i == 0 ? 2 : 1) / 8.0 * residual(x + i, y + j);
          if (weight(x + i, y + j) == 0) m = 0;
        }
      }
      sum += m * (std::hypot(gx, 1e-3) + std::hypot(gy, 1e-3) - 2e-3);
      total += m;
    }
  }
  return total > 0 ? c.step.loss.edge_weight * sum / (2 * total) : 0;
}

LossCase edge_case(uint32_t width, uint32_t height, bool weighted) {
  LossCase c(width, height);
  c.step.loss.edge_weight = 1.8f;
  for (uint32_t i = 0; weighted && i < c.n(); ++i) {
    c.weight.push_back(random_at(21, i) < 0.05f ? 0.0f : 2 * random_at(22, i));
  }
  return c;
}

TEST(EdgeLoss, ValueAndGradientAreThoseOfFiniteDifferences) {
  for (const auto& [width, height, weighted] :
       {std::tuple{23u, 19u, false}, {23u, 19u, true}, {8u, 9u, false}, {40u, 17u, true}}) {
    SCOPED_TRACE(testing::Message() << width << "x" << height << (weighted ? " weighted" : ""));
    const LossCase c = edge_case(width, height, weighted);
    const Output got = device_edge_loss(c);
    std::vector<double> image(c.image.begin(), c.image.end());
    EXPECT_NEAR(got.totals.edge, reference(c, image), 1e-6);
    std::vector<double> expected;
    double largest = 0;
    for (size_t i = 0; i < image.size(); i += 3) {
      const double at = image[i], h = 1e-6;
      image[i] = at + h;
      const double above = reference(c, image);
      image[i] = at - h;
      expected.push_back((above - reference(c, image)) / (2 * h));
      image[i] = at;
      largest = std::max(largest, std::abs(expected.back()));
    }
    ASSERT_GT(largest, 0);
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_NEAR(got.d_image[3 * k], expected[k],
                  1e-3 * std::max(std::abs(expected[k]), 1e-1 * largest))
          << k;
    }
  }
}

TEST(EdgeLoss, AddsToTheGradientThatIsThere) {
  const LossCase c = edge_case(33, 21, false);
  const Output alone = device_edge_loss(c), added = device_edge_loss(c, 0.5f);
  for (size_t i = 0; i < 3 * c.n(); ++i) {
    ASSERT_NEAR(added.d_image[i], 0.5f + alone.d_image[i], 1e-7) << i;
  }
}

TEST(EdgeLoss, BeforeItsStartChangesNothing) {
  LossCase c = edge_case(33, 21, true);
  c.step.loss.edge_weight = 0;
  const Output got = device_edge_loss(c, 0.5f);
  EXPECT_EQ(got.totals.edge, 0.0f);
  for (const float d : got.d_image) ASSERT_EQ(d, 0.5f);
}

TEST(EdgeLoss, OfNoWeightIsZero) {
  LossCase c = edge_case(33, 21, true);
  std::fill(c.weight.begin(), c.weight.end(), 0.0f);
  const Output got = device_edge_loss(c, 0.5f);
  EXPECT_EQ(got.totals.edge, 0.0f);
  for (const float d : got.d_image) ASSERT_EQ(d, 0.5f);
}

TEST(EdgeLoss, NothingIsWrittenForARefusedStep) {
  LossCase c = edge_case(33, 21, true);
  c.accepted = false;
  const Output got = device_edge_loss(c, 0.5f);
  EXPECT_EQ(got.totals.edge, 7.0f);
  for (const float d : got.d_image) ASSERT_EQ(d, 0.5f);
}

}  // namespace
}  // namespace millrace::test
