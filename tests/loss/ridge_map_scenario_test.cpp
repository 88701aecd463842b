// The ridge map of a photograph against a direct float64 computation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "loss/loss_bench.h"
#include "loss/pixel_weights.h"

namespace millrace::test {
namespace {

std::vector<uint8_t> device_ridges(const std::vector<uint8_t>& target, uint32_t width,
                                   uint32_t height) {
  const std::unique_ptr<Device> device =
      make_checked(open_device(simulated::test_device("cpu:2")).or_raise());
  const uint64_t n = uint64_t{width} * height;
  const Tensor photograph = Tensor::from_host(*device, target, Shape{3 * n}, "test");
  const Ticket map = read_later(ridge_map(photograph, width, height));
  device->wait_blocking(device->submit(), {WaitReason::Test, "test.ridges"}).or_raise();
  const auto* bytes = reinterpret_cast<const uint8_t*>(map.bytes().data());
  return {bytes, bytes + n};
}

// TRAINING.md 4.3, tap by tap.
std::vector<double> reference(const std::vector<uint8_t>& target, int width, int height) {
  const size_t n = static_cast<size_t>(width) * static_cast<size_t>(height);
  const auto mirrored = [](int i, int size) {
    i = ((i % (2 * size)) + 2 * size) % (2 * size);
    return i < size ? i : 2 * size - 1 - i;
  };
  const auto luminance = [&](int x, int y) {
    const auto at = static_cast<size_t>(mirrored(y, height) * width + mirrored(x, width));
    return (0.2126 * target[at] + 0.7152 * target[n + at] + 0.0722 * target[2 * n + at]) / 255;
  };
  std::vector<double> out(n);
  for (const double sigma : {0.8, 1.2, 1.8, 2.5}) {
    const int radius = static_cast<int>(std::floor(4 * sigma + 0.5));
    double sum = 0;
    for (int k = -radius; k <= radius; ++k) sum += std::exp(-k * k / (2 * sigma * sigma));
    const auto g = [&](int k) { return std::exp(-k * k / (2 * sigma * sigma)) / sum; };
    const auto g1 = [&](int k) { return k * g(k) / (sigma * sigma); };
    const auto g2 = [&](int k) { return (k * k / (sigma * sigma) - 1) * g(k) / (sigma * sigma); };
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        double xx = 0, yy = 0, xy = 0;
        for (int j = -radius; j <= radius; ++j) {
          for (int i = -radius; i <= radius; ++i) {
            const double v = sigma * sigma * luminance(x + i, y + j);
            xx += g2(i) * g(j) * v;
            yy += g(i) * g2(j) * v;
            xy += g1(i) * g1(j) * v;
          }
        }
        const double root = std::sqrt((xx - yy) * (xx - yy) + 4 * xy * xy);
        const double a = std::abs((xx + yy + root) / 2), b = std::abs((xx + yy - root) / 2);
        const double high = std::max(a, b), low = std::min(a, b);
        double& value = out[static_cast<size_t>(y * width + x)];
        value = std::max(value, high * (high - low) / (high + low + 1e-6));
      }
    }
  }
  double mean = 0;
  for (const double value : out) mean += value / static_cast<double>(n);
  for (double& value : out) value /= mean;
  return out;
}

TEST(RidgeMap, IsTheLargestResponseOverItsMean) {
  for (const auto& [width, height] : {std::pair{37u, 45u}, {18u, 70u}, {7u, 5u}}) {
    SCOPED_TRACE(testing::Message() << width << "x" << height);
    const LossCase c(width, height);
    const std::vector<uint8_t> got = device_ridges(c.target, width, height);
    const std::vector<double> expected =
        reference(c.target, static_cast<int>(width), static_cast<int>(height));
    for (size_t i = 0; i < c.n(); ++i) {
      ASSERT_NEAR(got[i], 63 * std::min(expected[i], 4.0), 1.0) << i;
    }
  }
}

TEST(RidgeMap, IsHighOnAThinLineAndLowInFlatAreas) {
  constexpr uint32_t kSize = 48;
  std::vector<uint8_t> target(3 * kSize * kSize, 120);
  for (uint32_t y = 0; y < kSize; ++y) {
    for (uint32_t c = 0; c < 3; ++c) target[(c * kSize + y) * kSize + 24] = 200;
  }
  const std::vector<uint8_t> got = device_ridges(target, kSize, kSize);
  for (uint32_t y = 0; y < kSize; ++y) {
    EXPECT_EQ(got[y * kSize + 24], 252) << y;
    EXPECT_LT(got[y * kSize + 4], 2) << y;
  }
}

TEST(RidgeMap, OfAConstantImageIsZero) {
  for (const uint8_t byte : std::to_array<uint8_t>({0, 128, 255})) {
    const std::vector<uint8_t> got = device_ridges(std::vector<uint8_t>(3 * 40 * 30, byte), 40, 30);
    EXPECT_EQ(std::count(got.begin(), got.end(), 0), 40 * 30);
  }
}

}  // namespace
}  // namespace millrace::test
