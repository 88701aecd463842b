// PPISP against a direct float64 computation: values, gradients by central differences, and Adam.
#include "appearance/ppisp.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "base/philox.h"
#include "simulated/substitute.h"
#include "tensor/launch.h"

namespace millrace::test {
namespace {

using Vec3 = std::array<double, 3>;

double uniform(uint32_t row, uint32_t lane) {
  return uniform_open(philox(5, 0, RandomPurpose::Synthetic, row, lane)[0]);
}
Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// The parameters of one frame and camera.
struct Frame {
  double exposure = 0;
  std::array<double, 8> colour = {};
  std::array<double, 15> vignetting = {};
  std::array<double, 12> crf = {};
};
Frame identity_frame() {
  Frame frame;
  for (size_t c = 0; c < 3; ++c) {
    frame.crf[4 * c] = frame.crf[4 * c + 1] = std::log(std::expm1(0.7));
    frame.crf[4 * c + 2] = std::log(std::expm1(0.9));
  }
  return frame;
}
Frame random_frame() {
  Frame frame = identity_frame();
  frame.exposure = 0.3;
  for (uint32_t k = 0; k < 8; ++k) frame.colour[k] = 2 * uniform(k, 1) - 1;
  for (uint32_t c = 0; c < 3; ++c) {
    for (uint32_t k = 0; k < 2; ++k) frame.vignetting[5 * c + k] = 0.1 * uniform(k + 9 * c, 2);
    for (uint32_t k = 2; k < 5; ++k)
      frame.vignetting[5 * c + k] = -0.2 - 0.2 * uniform(k + 9 * c, 2);
    for (uint32_t k = 0; k < 4; ++k) frame.crf[4 * c + k] += 0.6 * uniform(k + 9 * c, 3) - 0.3;
  }
  return frame;
}

// TRAINING.md 5.3: the null vector of [t_n]x T, H = T diag(l) S^-1 / H22.
std::array<double, 9> reference_homography(const std::array<double, 8>& latents) {
  constexpr double kZca[4][4] = {{.0480542, -.0043631, -.0043631, .0481283},
                                 {.0580570, -.0179872, -.0179872, .0431061},
                                 {.0433336, -.0180537, -.0180537, .0580500},
                                 {.0128369, -.0034654, -.0034654, .0128158}};
  constexpr double kTarget[4][2] = {{0, 0}, {1, 0}, {0, 1}, {1. / 3, 1. / 3}};
  Vec3 t[4];
  for (size_t k = 0; k < 4; ++k) {
    const double x = latents[2 * k], y = latents[2 * k + 1];
    t[k] = {kTarget[k][0] + kZca[k][0] * x + kZca[k][1] * y,
            kTarget[k][1] + kZca[k][2] * x + kZca[k][3] * y, 1};
  }
  const Vec3& n = t[3];
  const Vec3 rows[3] = {{0, -n[2], n[1]}, {n[2], 0, -n[0]}, {-n[1], n[0], 0}};
  Vec3 m[3];
  for (size_t i = 0; i < 3; ++i) {
    for (size_t k = 0; k < 3; ++k) {
      m[i][k] = rows[i][0] * t[k][0] + rows[i][1] * t[k][1] + rows[i][2] * t[k][2];
    }
  }
  const Vec3 lambda = cross(m[0], m[1]);
  constexpr double kInverse[3][3] = {{-1, -1, 1}, {1, 0, 0}, {0, 1, 0}};
  std::array<double, 9> h;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      h[3 * i + j] = 0;
      for (size_t k = 0; k < 3; ++k) h[3 * i + j] += t[k][i] * lambda[k] * kInverse[k][j];
    }
  }
  for (size_t i = 0; i < 9; ++i) h[i] /= i == 8 ? 1 : h[8];
  h[8] = 1;
  return h;
}

double softplus(double x) { return std::log1p(std::exp(x)); }

Vec3 reference_pixel(const Frame& frame, Vec3 c, double u, double v, bool with_crf) {
  for (size_t k = 0; k < 3; ++k) {
    const double* p = &frame.vignetting[5 * k];
    const double r2 = (u - p[0]) * (u - p[0]) + (v - p[1]) * (v - p[1]);
    const double f = 1 + p[2] * r2 + p[3] * r2 * r2 + p[4] * r2 * r2 * r2;
    c[k] *= std::exp2(frame.exposure) * std::clamp(f, 0., 1.);
  }
  const auto h = reference_homography(frame.colour);
  const double sum = c[0] + c[1] + c[2];
  double w[3];
  for (size_t i = 0; i < 3; ++i) w[i] = h[3 * i] * c[0] + h[3 * i + 1] * c[1] + h[3 * i + 2] * sum;
  const double scale = (sum + 1e-5) / (std::max(w[2], 0.) + 1e-5);
  Vec3 out = {scale * w[0], scale * w[1], scale * (w[2] - w[0] - w[1])};
  for (size_t k = 0; k < 3; ++k) {
    const double x = std::clamp(out[k], 0., 1.);
    if (!with_crf) {
      out[k] = x;
      continue;
    }
    const double* p = &frame.crf[4 * k];
    const double toe = 0.3 + softplus(p[0]), shoulder = 0.3 + softplus(p[1]);
    const double gamma = 0.1 + softplus(p[2]), centre = 1 / (1 + std::exp(-p[3]));
    const double a = shoulder * centre / (toe + (shoulder - toe) * centre);
    const double y = x <= centre ? a * std::pow(x / centre, toe)
                                 : 1 - (1 - a) * std::pow((1 - x) / (1 - centre), shoulder);
    out[k] = std::pow(std::max(y, 0.), gamma);
  }
  return out;
}

std::vector<double> reference_image(const Frame& frame, const std::vector<double>& image,
                                    uint32_t width, uint32_t height, bool with_crf) {
  const uint32_t n = width * height;
  std::vector<double> out(3 * n);
  for (uint32_t i = 0; i < n; ++i) {
    const double side = std::max(width, height);
    const Vec3 c = reference_pixel(frame, {image[i], image[n + i], image[2 * n + i]},
                                   (i % width + 0.5 - 0.5 * width) / side,
                                   (i / width + 0.5 - 0.5 * height) / side, with_crf);
    for (uint32_t k = 0; k < 3; ++k) out[k * n + i] = c[k];
  }
  return out;
}

constexpr uint32_t kFrames = 5, kCameras = 2, kFrame = 3, kCamera = 1;
constexpr uint32_t kModes = kAppearancePpisp | kAppearanceCrf | kAppearanceProject;

/// The state on a device with `frame` as frame 3 of camera 1, and a step.
struct Bench {
  std::unique_ptr<Device> device =
      make_checked(open_device(simulated::test_device("cpu:2")).or_raise());
  Ppisp ppisp;
  Tensor step, control;
  const PpispParams shape = {0, 0, kFrames, kCameras};

  explicit Bench(const Frame& frame, uint32_t modes = kModes, bool accepted = true) {
    ppisp = make_ppisp(*device, std::vector<float>(kFrames, 0.0f), kCameras, 64);
    std::vector<float> values = read_blocking(ppisp.values);
    values[kFrame] = static_cast<float>(frame.exposure);
    std::copy(frame.colour.begin(), frame.colour.end(), &values[ppisp_colour_at(shape, kFrame)]);
    std::copy(frame.vignetting.begin(), frame.vignetting.end(),
              &values[ppisp_vignetting_at(shape, kCamera)]);
    // Away from where the penalties have a kink.
    for (uint32_t i = 0; i < kPpispVignetting; ++i) {
      values[ppisp_vignetting_at(shape, 0) + i] = (i % 2 ? 0.1f : -0.13f) * (1 + i);
    }
    std::copy(frame.crf.begin(), frame.crf.end(), &values[ppisp_crf_at(shape, kCamera)]);
    ppisp.values.upload(values);
    StepBlock block = {};
    block.transaction = 4;
    block.appearance = {.modes = modes,
                        .frame = kFrame,
                        .camera = kCamera,
                        .updates = 0,
                        .ppisp_rate = 2e-3f,
                        .ppisp_inv_sqrt_bias2 = 1.5f,
                        .ppisp_reg = 1,
                        .grid_rate = 0,
                        .grid_inv_sqrt_bias2 = 0,
                        .grid_tv = 0,
                        .controller_rate = 0,
                        .controller_inv_sqrt_bias2 = 0};
    Control record = {};
    record.gate.accepted = accepted ? block.transaction : kNoTransaction;
    step = upload(block);
    control = upload(record);
  }
  template <class Record>
  Tensor upload(const Record& record) {
    const auto* data = reinterpret_cast<const uint32_t*>(&record);
    const std::vector<uint32_t> words(data, data + sizeof(record) / 4);
    return Tensor::from_host(*device, words, Shape{words.size()}, "test");
  }
  Tensor upload_image(const std::vector<double>& image) {
    return Tensor::from_host(*device, std::vector<float>(image.begin(), image.end()),
                             Shape{image.size()}, "test");
  }
  std::vector<float> read_blocking(const Tensor& tensor) {
    const Ticket ticket = read_later(tensor);
    device->wait_blocking(device->submit(), {WaitReason::Test, "test.ppisp"}).or_raise();
    const auto* data = reinterpret_cast<const float*>(ticket.bytes().data());
    return {data, data + tensor.numel()};
  }
  std::vector<float> corrected_blocking(const std::vector<double>& image, uint32_t width,
                                        uint32_t height) {
    const Tensor raw = upload_image(image);
    const Tensor out = Tensor::full(*device, Shape{image.size()}, Dtype::F32, 7, "test");
    ppisp_forward(ppisp, {step, control, raw, width, height}, out);
    return read_blocking(out);
  }
};

std::vector<double> random_image(uint32_t width, uint32_t height, double low, double high) {
  std::vector<double> image(3 * width * height);
  for (uint32_t i = 0; i < image.size(); ++i) image[i] = low + (high - low) * uniform(i, 7);
  return image;
}

struct Size {
  uint32_t width, height;
};
class PpispImage : public testing::TestWithParam<Size> {};

TEST_P(PpispImage, AgreesWithFloat64BeyondTheRangeOfAPhotographToo) {
  const auto [width, height] = GetParam();
  const std::vector<double> image = random_image(width, height, 0, 1.5);
  for (const uint32_t modes : {kModes, kModes & ~kAppearanceCrf}) {
    Bench bench(random_frame(), modes);
    const auto got = bench.corrected_blocking(image, width, height);
    const auto wanted =
        reference_image(random_frame(), image, width, height, (modes & kAppearanceCrf) != 0);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 2e-5) << i;
  }
}

// L = sum of weights times the corrected image, in double precision, by central differences.
TEST_P(PpispImage, GradientsAgreeWithCentralDifferences) {
  const auto [given_width, given_height] = GetParam();
  const auto width = given_width, height = given_height;
  const std::vector<double> image = random_image(width, height, 0.1, 0.7);
  std::vector<double> weights(image.size());
  for (uint32_t i = 0; i < weights.size(); ++i) weights[i] = 2 * uniform(i, 8) - 0.5;
  for (const uint32_t modes : {kModes, kModes & ~kAppearanceCrf}) {
    const bool with_crf = (modes & kAppearanceCrf) != 0;
    Frame frame = random_frame();
    std::vector<double> input = image;
    const auto loss = [&] {
      const auto out = reference_image(frame, input, width, height, with_crf);
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += weights[i] * out[i];
      return sum;
    };
    const auto slope = [&](double& x) {
      const double saved = x, h = 1e-5;
      x = saved + h;
      const double above = loss();
      x = saved - h;
      const double below = loss();
      x = saved;
      return (above - below) / (2 * h);
    };
    Bench bench(frame, modes);
    const Tensor raw = bench.upload_image(image), d_image = bench.upload_image(weights);
    ppisp_backward(bench.ppisp, {bench.step, bench.control, raw, width, height}, d_image);
    const auto got = bench.read_blocking(bench.ppisp.gradient);
    std::vector<double*> parameters = {&frame.exposure};
    for (double& x : frame.colour) parameters.push_back(&x);
    for (double& x : frame.vignetting) parameters.push_back(&x);
    for (double& x : frame.crf) parameters.push_back(&x);
    ASSERT_EQ(got.size(), parameters.size());
    std::vector<double> wanted;
    for (double* x : parameters) wanted.push_back(slope(*x));
    for (size_t i = 0; i < got.size(); ++i) {
      const double scale = std::abs(wanted[0]);  // of the exposure
      EXPECT_NEAR(got[i], wanted[i], 1e-3 * std::max(std::abs(wanted[i]), 1e-2 * scale)) << i;
    }
    const auto d_raw = bench.read_blocking(d_image);
    for (size_t i = 0; i < image.size(); i += 1 + image.size() / 50) {
      EXPECT_NEAR(d_raw[i], slope(input[i]), 2e-3) << "pixel value " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PpispImage,
                         testing::Values(Size{1, 1}, Size{7, 3}, Size{16, 4}, Size{33, 29}),
                         [](const auto& info) {
                           return std::to_string(info.param.width) + "x" +
                                  std::to_string(info.param.height);
                         });

TEST(Ppisp, BeginsAsTheIdentity) {
  const std::vector<double> image = random_image(9, 6, 0, 1);
  Bench bench(identity_frame());
  const auto got = bench.corrected_blocking(image, 9, 6);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], image[i], 1.1e-5) << i;
}

TEST(Ppisp, ExposureAloneIsAGainOfTwoToIt) {
  Frame frame = identity_frame();
  frame.exposure = -1;
  Bench bench(frame);
  const auto got = bench.corrected_blocking({0.8, 0.4, 0.2}, 1, 1);
  EXPECT_NEAR(got[0], 0.4, 1e-5);
  EXPECT_NEAR(got[1], 0.2, 1e-5);
  EXPECT_NEAR(got[2], 0.1, 1e-5);
}

TEST(Ppisp, VignettingFallsOffFromTheMiddleInLongerSides) {
  Frame frame = identity_frame();
  for (size_t c = 0; c < 3; ++c) frame.vignetting[5 * c + 2] = -1;
  Bench bench(frame);
  const auto got = bench.corrected_blocking(std::vector<double>(12, 0.5), 4, 1);
  // Centres of the four pixels are 3/8 and 1/8 of the width from the middle.
  EXPECT_NEAR(got[0], 0.5 * (1 - 9.0 / 64), 1e-5);
  EXPECT_NEAR(got[1], 0.5 * (1 - 1.0 / 64), 1e-5);
  EXPECT_NEAR(got[2], got[1], 1e-6);
}

// The latents of a target move that chromaticity by the ZCA block and keep the others and the sum.
TEST(Ppisp, ColourMovesKnownChromaticities) {
  Frame frame = identity_frame();
  frame.colour[6] = 2;
  Bench bench(frame);
  const auto gray = bench.corrected_blocking({0.3, 0.3, 0.3}, 1, 1);
  EXPECT_NEAR(gray[0], 0.9 * (1.0 / 3 + 2 * 0.0128369), 2e-5);
  EXPECT_NEAR(gray[1], 0.9 * (1.0 / 3 - 2 * 0.0034654), 2e-5);
  EXPECT_NEAR(gray[0] + gray[1] + gray[2], 0.9, 2e-5);
  const auto red = bench.corrected_blocking({0.6, 0, 0}, 1, 1);
  EXPECT_NEAR(red[0], 0.6, 2e-5);
  EXPECT_NEAR(red[1], 0, 2e-5);
}

TEST(Ppisp, GradientsOfClampedValuesPassThatPointInside) {
  Frame frame = identity_frame();
  Bench bench(frame, kAppearancePpisp);
  const Tensor raw = bench.upload_image({1.5, 1.5, 0.5, 0.5, 0.5, 0.5});
  const Tensor d_image = bench.upload_image({1, -1, 0, 0, 0, 0});
  ppisp_backward(bench.ppisp, {bench.step, bench.control, raw, 2, 1}, d_image);
  const auto got = bench.read_blocking(d_image);
  EXPECT_NEAR(got[0], 1, 1e-4);
  EXPECT_EQ(got[1], 0);
}

TEST(Ppisp, NothingIsWrittenForARefusedStep) {
  Bench bench(random_frame(), kModes, /*accepted=*/false);
  const auto before = bench.read_blocking(bench.ppisp.values);
  const auto image = random_image(9, 6, 0, 1);
  for (const float x : bench.corrected_blocking(image, 9, 6)) ASSERT_EQ(x, 7);
  const Tensor raw = bench.upload_image(image), d_image = bench.upload_image(image);
  bench.ppisp.gradient.upload(std::vector<float>(kPpispGradients, 1.0f));
  ppisp_backward(bench.ppisp, {bench.step, bench.control, raw, 9, 6}, d_image);
  ppisp_update(bench.ppisp, bench.step, bench.control);
  EXPECT_EQ(bench.read_blocking(d_image), bench.read_blocking(raw));
  EXPECT_EQ(bench.read_blocking(bench.ppisp.gradient), std::vector<float>(kPpispGradients, 1.0f));
  EXPECT_EQ(bench.read_blocking(bench.ppisp.values), before);
}

TEST(PpispUpdate, WaitsWhileOnlyTheControllerLearns) {
  Bench bench(random_frame(), kModes | kAppearanceController);
  const auto before = bench.read_blocking(bench.ppisp.values);
  bench.ppisp.gradient.upload(std::vector<float>(kPpispGradients, 1.0f));
  ppisp_update(bench.ppisp, bench.step, bench.control);
  EXPECT_EQ(bench.read_blocking(bench.ppisp.values), before);
}

// Penalties on vignetting and response by their definitions (TRAINING.md 5.3), for differences.
double penalties(const std::vector<double>& values, const PpispParams& shape) {
  const double n = shape.n_cameras;
  const auto variance = [&](uint64_t first, uint32_t stride) {
    double mean = 0, sum = 0;
    for (uint32_t c = 0; c < 3; ++c) mean += values[first + c * stride] / 3;
    for (uint32_t c = 0; c < 3; ++c) sum += std::pow(values[first + c * stride] - mean, 2) / 3;
    return sum;
  };
  double sum = 0;
  for (uint32_t camera = 0; camera < shape.n_cameras; ++camera) {
    const uint64_t vignetting = ppisp_vignetting_at(shape, camera);
    for (uint32_t i = 0; i < 15; ++i) {
      const double x = values[vignetting + i];
      sum += i % 5 < 2 ? 0.02 * x * x / (3 * n) : 0.01 * std::max(x, 0.) / (9 * n);
    }
    for (uint32_t k = 0; k < 5; ++k) sum += 0.1 * variance(vignetting + k, 5) / (5 * n);
    for (uint32_t k = 0; k < 4; ++k) {
      sum += 0.1 * variance(ppisp_crf_at(shape, camera) + k, 4) / (4 * n);
    }
  }
  return sum;
}

TEST(PpispUpdate, AgreesWithFloat64OverManyStepsAndKeepsMeansOverFramesAtZero) {
  Bench bench(random_frame());
  const auto first = bench.read_blocking(bench.ppisp.values);
  std::vector<double> value(first.begin(), first.end()), m(value.size()), v(value.size());
  for (uint32_t round = 0; round < 20; ++round) {
    std::vector<float> data(kPpispGradients);
    for (uint32_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<float>(uniform(i, 20 + round) - 0.3);
    }
    bench.ppisp.gradient.upload(data);
    ppisp_update(bench.ppisp, bench.step, bench.control);

    std::vector<double> gradient(value.size());
    for (size_t i = ppisp_vignetting_at(bench.shape, 0); i < value.size(); ++i) {
      const double saved = value[i], h = 1e-6;
      value[i] = saved + h;
      const double above = penalties(value, bench.shape);
      value[i] = saved - h;
      gradient[i] = (above - penalties(value, bench.shape)) / (2 * h);
      value[i] = saved;
    }
    gradient[kFrame] += data[0];
    for (uint32_t k = 0; k < 8; ++k)
      gradient[ppisp_colour_at(bench.shape, kFrame) + k] += data[1 + k];
    for (uint32_t k = 0; k < 15; ++k) {
      gradient[ppisp_vignetting_at(bench.shape, kCamera) + k] += data[9 + k];
    }
    for (uint32_t k = 0; k < 12; ++k) {
      gradient[ppisp_crf_at(bench.shape, kCamera) + k] += data[24 + k];
    }
    for (size_t i = 0; i < value.size(); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * gradient[i];
      v[i] = 0.999 * v[i] + 0.001 * gradient[i] * gradient[i];
      // Below what differences resolve there is no slope.
      if (std::abs(gradient[i]) < 1e-8 && std::abs(m[i]) < 1e-8) continue;
      value[i] -= 2e-3 * m[i] / (std::sqrt(v[i]) * 1.5 + 1e-15);
    }
    for (uint32_t lane = 0; lane < 9; ++lane) {
      double mean = 0;
      const auto at = [&](uint32_t frame) {
        return lane == 0 ? frame : kFrames + 8 * frame + lane - 1;
      };
      for (uint32_t frame = 0; frame < kFrames; ++frame) mean += value[at(frame)] / kFrames;
      for (uint32_t frame = 0; frame < kFrames; ++frame) value[at(frame)] -= mean;
    }
  }
  const auto got = bench.read_blocking(bench.ppisp.values);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], value[i], 2e-5) << i;
  double mean = 0;
  for (uint32_t frame = 0; frame < kFrames; ++frame) mean += got[frame] / kFrames;
  EXPECT_NEAR(mean, 0, 1e-6);
}

TEST(PpispUpdate, AGradientThatIsNotFiniteChangesNothingByItself) {
  Bench bench(identity_frame());
  bench.ppisp.gradient.upload(std::vector<float>(kPpispGradients, NAN));
  ppisp_update(bench.ppisp, bench.step, bench.control);
  for (const float x : bench.read_blocking(bench.ppisp.values)) ASSERT_TRUE(std::isfinite(x));
}

}  // namespace
}  // namespace millrace::test
