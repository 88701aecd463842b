// The photometric loss and its image gradient against a direct float64 computation.
#include "loss/photometric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "base/philox.h"
#include "kernels/splat_params.h"
#include "simulated/substitute.h"
#include "tensor/launch.h"

namespace millrace::test {
namespace {

constexpr double kTaps[11] = {0.001028380123898387,  0.0075987582094967365, 0.036000773310661316,
                              0.10936068743467331,   0.21300552785396576,   0.26601171493530273,
                              0.21300552785396576,   0.10936068743467331,   0.036000773310661316,
                              0.0075987582094967365, 0.001028380123898387};
constexpr double kC1 = 1e-4, kC2 = 9e-4;

struct Reference {
  double loss = 0, l1 = 0, ssim = 0, mse = 0;
  std::vector<double> d_image;  // [3,H,W]
};

// TRAINING.md 4.1, tap by tap: windows with zero padding, means over the pixels at least 5 from
// every border.
Reference reference_loss(const std::vector<float>& image, const std::vector<uint8_t>& target,
                         int width, int height, double lambda) {
  const int edge = width > 10 && height > 10 ? 5 : 0;
  const double count = 3.0 * (width - 2 * edge) * (height - 2 * edge);
  Reference out;
  out.d_image.resize(image.size());
  for (int c = 0; c < 3; ++c) {
    const size_t plane = static_cast<size_t>(c) * width * height;
    const auto at = [&](int x, int y) { return plane + static_cast<size_t>(y) * width + x; };
    for (int y = edge; y < height - edge; ++y) {
      for (int x = edge; x < width - edge; ++x) {
        const double difference = image[at(x, y)] - target[at(x, y)] / 255.0;
        out.l1 += std::abs(difference) / count;
        out.mse += difference * difference / count;
        out.d_image[at(x, y)] += (1 - lambda) * ((difference > 0) - (difference < 0)) / count;
        double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
        const auto window = [&](const auto& visit) {
          for (int j = -5; j <= 5; ++j) {
            for (int i = -5; i <= 5; ++i) {
              if (x + i < 0 || x + i >= width || y + j < 0 || y + j >= height) continue;
              visit(at(x + i, y + j), kTaps[i + 5] * kTaps[j + 5]);
            }
          }
        };
        window([&](size_t k, double w) {
          const double a = image[k], b = target[k] / 255.0;
          mx += w * a;
          my += w * b;
          xx += w * a * a;
          yy += w * b * b;
          xy += w * a * b;
        });
        const double l_top = 2 * mx * my + kC1, l_bottom = mx * mx + my * my + kC1;
        const double s_top = 2 * (xy - mx * my) + kC2;
        const double s_bottom = (xx - mx * mx) + (yy - my * my) + kC2;
        const double ssim = l_top * s_top / (l_bottom * s_bottom);
        out.ssim += ssim / count;
        // d ssim / d mx, d xx, d xy with mx, xx and xy as independent sums.
        const double d_mx = 2 * my * s_top / (l_bottom * s_bottom) -
                            2 * my * l_top / (l_bottom * s_bottom) - ssim * 2 * mx / l_bottom +
                            ssim * 2 * mx / s_bottom;
        const double d_xx = -ssim / s_bottom, d_xy = 2 * l_top / (l_bottom * s_bottom);
        window([&](size_t k, double w) {
          out.d_image[k] -=
              lambda / count * w * (d_mx + 2 * image[k] * d_xx + target[k] / 255.0 * d_xy);
        });
      }
    }
  }
  out.loss = (1 - lambda) * out.l1 + lambda * (1 - out.ssim);
  return out;
}

struct Case {
  uint32_t width, height;
  float lambda;
};
std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::to_string(info.param.width) + "x" + std::to_string(info.param.height) + "AtLambda" +
         std::to_string(static_cast<int>(10 * info.param.lambda));
}

struct Images {
  std::vector<float> image;          // [3,H,W]
  std::vector<uint8_t> target;       // [3,H,W]
  std::vector<uint8_t> interleaved;  // [H,W,3]
};

Images make_images(uint32_t width, uint32_t height) {
  const uint32_t n = width * height;
  Images out = {std::vector<float>(3 * n), std::vector<uint8_t>(3 * n),
                std::vector<uint8_t>(3 * n)};
  for (uint32_t i = 0; i < 3 * n; ++i) {
    const auto words = philox(11, width, RandomPurpose::Synthetic, i);
    const double wave = 0.5 + 0.4 * std::sin(0.37 * (i % width) + 0.21 * (i / width) + i / n);
    out.target[i] = static_cast<uint8_t>(255 * (0.7 * wave + 0.3 * uniform_open(words[0])));
    // A quarter of the pixels beyond what a photograph can hold, as renders have them.
    out.image[i] = static_cast<float>(1.2 * wave + 0.3 * uniform_open(words[1]) - 0.2);
  }
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t c = 0; c < 3; ++c) out.interleaved[3 * i + c] = out.target[c * n + i];
  }
  return out;
}

struct DeviceLoss {
  StepMetrics metrics;
  std::vector<float> d_image;
};

// `accepted`: whether the gate has accepted the step.
DeviceLoss device_loss(const Images& images, uint32_t width, uint32_t height, float lambda,
                       bool accepted = true) {
  const std::unique_ptr<Device> device =
      make_checked(open_device(simulated::test_device("cpu:2")).or_raise());
  StepBlock block = {};
  block.transaction = 4;
  block.ssim_weight = lambda;
  Control control = {};
  control.gate.accepted = accepted ? block.transaction : kNoTransaction;
  const auto words = [](const auto& record) {
    const auto* data = reinterpret_cast<const uint32_t*>(&record);
    return std::vector<uint32_t>(data, data + sizeof(record) / 4);
  };
  const uint64_t n = uint64_t{width} * height, n_bands = (height + kLossBand - 1) / kLossBand;
  const Tensor step = Tensor::from_host(*device, words(block), Shape{sizeof(block) / 4}, "test");
  const Tensor controls =
      Tensor::from_host(*device, words(control), Shape{sizeof(control) / 4}, "test");
  const Tensor image = Tensor::from_host(*device, images.image, Shape{3, height, width}, "test");
  const Tensor target = upload_photograph(*device, images.interleaved, width, height);
  const Tensor maps = Tensor::full(*device, Shape{9 * n}, Dtype::F32, 7, "test");
  const Tensor partials =
      Tensor::full(*device, Shape{3 * n_bands * kLossSums}, Dtype::F32, 7, "test");
  const Tensor d_image = Tensor::full(*device, Shape{3 * n}, Dtype::F32, 7, "test");
  photometric_loss({step, controls, image, target, maps, partials, d_image, width, height});
  const Ticket gradient = read_later(d_image), after = read_later(controls);
  device->wait_blocking(device->submit(), {WaitReason::Test, "test.loss"}).or_raise();
  const auto* values = reinterpret_cast<const float*>(gradient.bytes().data());
  return {after.as<Control>().metrics, {values, values + 3 * n}};
}

class PhotometricLoss : public testing::TestWithParam<Case> {};

TEST_P(PhotometricLoss, ValueAndGradientAgreeWithFloat64) {
  const auto [width, height, lambda] = GetParam();
  const Images images = make_images(width, height);
  const Reference expected = reference_loss(images.image, images.target, static_cast<int>(width),
                                            static_cast<int>(height), lambda);
  const DeviceLoss got = device_loss(images, width, height, lambda);
  EXPECT_NEAR(got.metrics.loss, expected.loss, 1e-5);
  EXPECT_NEAR(got.metrics.l1, expected.l1, 1e-5);
  EXPECT_NEAR(got.metrics.mse, expected.mse, 1e-5);
  EXPECT_NEAR(got.metrics.ssim, expected.ssim, 2e-5);
  double largest = 0;
  for (const double g : expected.d_image) largest = std::max(largest, std::abs(g));
  ASSERT_GT(largest, 0);
  size_t n_bad = 0;
  for (size_t i = 0; i < expected.d_image.size(); ++i) {
    const double limit = 1e-3 * std::max(std::abs(expected.d_image[i]), 1e-2 * largest);
    n_bad += std::abs(got.d_image[i] - expected.d_image[i]) <= limit ? 0 : 1;
    if (n_bad == 1) {
      EXPECT_NEAR(got.d_image[i], expected.d_image[i], limit) << "element " << i;
    }
  }
  EXPECT_EQ(n_bad, 0u);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PhotometricLoss,
                         testing::Values(Case{1, 1, 0.2f}, Case{5, 7, 0.2f}, Case{10, 10, 0.2f},
                                         Case{10, 40, 0.2f}, Case{11, 11, 0.2f}, Case{12, 11, 0.2f},
                                         Case{16, 16, 0.2f}, Case{33, 29, 0.2f}, Case{37, 65, 0.2f},
                                         Case{48, 64, 0.2f}, Case{100, 33, 0.2f},
                                         Case{33, 29, 0.0f}, Case{33, 29, 1.0f}, Case{9, 9, 1.0f},
                                         Case{11, 11, 0.0f}, Case{11, 11, 1.0f}),
                         name_of);

TEST(PhotometricLossEdges, OnlyTheCentrePixelOfAn11x11ImageCounts) {
  Images images = make_images(11, 11);
  const DeviceLoss before = device_loss(images, 11, 11, 0.0f);
  images.image[0] += 0.5f;
  const DeviceLoss corner = device_loss(images, 11, 11, 0.0f);
  EXPECT_EQ(before.metrics.l1, corner.metrics.l1);
  size_t n_nonzero = 0;
  for (const float g : corner.d_image) n_nonzero += g != 0.0f;
  EXPECT_EQ(n_nonzero, 3u);
}

TEST(PhotometricLossEdges, APerfectRenderHasNoLossAndNoGradient) {
  Images images = make_images(40, 30);
  for (size_t i = 0; i < images.image.size(); ++i) {
    images.image[i] = static_cast<float>(images.target[i]) / 255.0f;
  }
  const DeviceLoss got = device_loss(images, 40, 30, 1.0f);
  EXPECT_NEAR(got.metrics.loss, 0, 1e-6);
  EXPECT_NEAR(got.metrics.ssim, 1, 1e-6);
  for (const float g : got.d_image) EXPECT_NEAR(g, 0, 1e-6);
}

TEST(PhotometricLossEdges, NothingIsWrittenForARefusedStep) {
  const Images images = make_images(33, 29);
  const DeviceLoss got = device_loss(images, 33, 29, 0.2f, /*accepted=*/false);
  EXPECT_EQ(got.metrics.loss, 0.0f);
  for (const float g : got.d_image) ASSERT_EQ(g, 7.0f);
}

TEST(PhotometricLossEdges, TwoRunsGiveTheSameBits) {
  const Images images = make_images(100, 70);
  EXPECT_EQ(device_loss(images, 100, 70, 0.2f).d_image, device_loss(images, 100, 70, 0.2f).d_image);
}

}  // namespace
}  // namespace millrace::test
