// Bilateral grids against a direct float64 computation: slices, gradients by central differences,
// total variation and Adam; and grids that come and go between host and device.
#include "appearance/bilateral_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/philox.h"
#include "kernels/ppisp_color.h"
#include "kernels/splat_params.h"
#include "simulated/substitute.h"
#include "tensor/launch.h"

namespace millrace::test {
namespace {

double uniform(uint32_t row, uint32_t lane) {
  return uniform_open(philox(9, 0, RandomPurpose::Synthetic, row, lane)[0]);
}
size_t cell_of(uint32_t c, int level, int row, int column) {
  return ((size_t{c} * 8 + static_cast<size_t>(level)) * 16 + static_cast<size_t>(row)) * 16 +
         static_cast<size_t>(column);
}
uint32_t channels_of(GridMode mode) { return static_cast<uint32_t>(mode); }

/// A grid, the image that it is applied to, and the weights of a loss sum(weight x shown).
struct Problem {
  GridMode mode;
  int width, height;
  std::vector<double> grid, offset, image, weights;
};
Problem make_problem(GridMode mode, int width, int height) {
  Problem p = {mode, width, height, {}, {}, {}, {}};
  const uint32_t channels = channels_of(mode);
  for (uint32_t c = 0; c < channels; ++c) {
    const bool one = mode == GridMode::Affine && c % 5 == 0;
    for (uint32_t i = 0; i < 2048; ++i) {
      p.grid.push_back((one ? 1 : 0) + 0.6 * uniform(2048 * c + i, 1) - 0.3);
    }
    p.offset.push_back(mode == GridMode::Affine ? 0.1 * uniform(c, 2) : 0);
  }
  p.offset.resize(12);
  const auto n = static_cast<uint32_t>(3 * width * height);
  for (uint32_t i = 0; i < n; ++i) {
    p.image.push_back(0.1 + 0.5 * uniform(i, 3));
    p.weights.push_back(2 * uniform(i, 4) - 0.5);
  }
  return p;
}

double luma_of(const std::array<double, 3>& rgb) {
  return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
}

// TRAINING.md 5.2, corner by corner.
std::array<double, 3> reference_pixel(const Problem& p, int x, int y,
                                      const std::array<double, 3>& rgb) {
  const double gx = p.width > 1 ? x * 15.0 / (p.width - 1) : 0;
  const double gy = p.height > 1 ? y * 15.0 / (p.height - 1) : 0;
  const double gz = std::clamp(luma_of(rgb), 0.0, 1.0) * 7;
  const int x0 = std::min(static_cast<int>(gx), 14), y0 = std::min(static_cast<int>(gy), 14);
  const int z0 = std::min(static_cast<int>(gz), 6);
  double s[12] = {};
  for (uint32_t c = 0; c < channels_of(p.mode); ++c) {
    s[c] = p.offset[c];
    for (int corner = 0; corner < 8; ++corner) {
      const int i = corner & 1, j = corner >> 1 & 1, k = corner >> 2;
      const double weight =
          (i ? gx - x0 : 1 - gx + x0) * (j ? gy - y0 : 1 - gy + y0) * (k ? gz - z0 : 1 - gz + z0);
      s[c] += weight * p.grid[cell_of(c, z0 + k, y0 + j, x0 + i)];
    }
  }
  std::array<double, 3> out;
  if (p.mode == GridMode::Affine) {
    for (size_t r = 0; r < 3; ++r) {
      out[r] = s[4 * r] * rgb[0] + s[4 * r + 1] * rgb[1] + s[4 * r + 2] * rgb[2] + s[4 * r + 3];
    }
  } else {
    double lit[3];
    for (size_t k = 0; k < 3; ++k) lit[k] = std::max(rgb[k], 0.0) * std::exp2(s[0]);
    kernels::apply_color(kernels::color_map(s + 1), lit, out.data());
    for (double& v : out) v = std::clamp(v, 0.0, 1.0);
  }
  return out;
}
std::array<double, 3> color_at(const Problem& p, int x, int y) {
  const size_t plane = static_cast<size_t>(p.width) * p.height, i = size_t(y) * p.width + x;
  return {p.image[i], p.image[plane + i], p.image[2 * plane + i]};
}
double loss_at(const Problem& p, int x, int y) {
  const size_t plane = static_cast<size_t>(p.width) * p.height, i = size_t(y) * p.width + x;
  const auto out = reference_pixel(p, x, y, color_at(p, x, y));
  return out[0] * p.weights[i] + out[1] * p.weights[plane + i] + out[2] * p.weights[2 * plane + i];
}
double loss_of(const Problem& p) {
  double sum = 0;
  for (int y = 0; y < p.height; ++y) {
    for (int x = 0; x < p.width; ++x) sum += loss_at(p, x, y);
  }
  return sum;
}

AppearanceStep appearance_step(uint32_t image, uint32_t updates) {
  AppearanceStep step = {};
  step.modes = kAppearanceGrid;
  step.frame = image;
  step.updates = updates;
  step.grid_rate = 2e-3f;
  step.grid_inv_sqrt_bias2 = 1.5f;
  step.grid_tv = 10;
  return step;
}

std::vector<float> floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

struct Bench {
  std::unique_ptr<Device> device;
  BilateralGrids grids;
  Tensor step, control;

  Bench(GridMode mode, uint32_t n_images, uint64_t budget = 1ull << 30, const char* id = "cpu:2")
      : device(make_checked(open_device(simulated::test_device(id)).or_raise())),
        grids(*device, mode, n_images, budget) {}

  template <class Record>
  Tensor upload(const Record& record) {
    const auto* data = reinterpret_cast<const uint32_t*>(&record);
    const std::vector<uint32_t> words(data, data + sizeof(record) / 4);
    return Tensor::from_host(*device, words, Shape{words.size()}, "test");
  }
  void begin(const AppearanceStep& appearance, bool accepted = true) {
    StepBlock block = {};
    block.transaction = 4;
    block.appearance = appearance;
    Control record = {};
    record.gate.accepted = accepted ? block.transaction : kNoTransaction;
    step = upload(block);
    control = upload(record);
  }
  Tensor upload_floats(const std::vector<double>& values) {
    return Tensor::from_host(*device, floats(values), Shape{values.size()}, "test");
  }
  void wait_blocking() {
    device->wait_blocking(device->submit(), {WaitReason::Test, "test.grid"}).or_raise();
  }
  std::vector<float> read_blocking(const Tensor& tensor) {
    const Ticket ticket = read_later(tensor);
    wait_blocking();
    const auto* data = reinterpret_cast<const float*>(ticket.bytes().data());
    return {data, data + tensor.numel()};
  }
  /// Puts the problem's grid and offset in place of image 0's.
  void set(const Problem& p) {
    grids.bind(0, {});
    grids.slot_of_bound().select(0, 0).upload(floats(p.grid));
    grids.shared_offset().upload(floats(p.offset));
  }
  BilateralGrids::Frame frame(const Tensor& image, int width, int height) const {
    return {step, control, image, static_cast<uint32_t>(width), static_cast<uint32_t>(height)};
  }
};

struct Case {
  GridMode mode;
  int width, height;
};
std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(info.param.mode == GridMode::Affine ? "Affine" : "ExposureChroma") +
         std::to_string(info.param.width) + "x" + std::to_string(info.param.height);
}
class GridSlice : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Sizes, GridSlice,
                         testing::Values(Case{GridMode::Affine, 1, 1}, Case{GridMode::Affine, 2, 5},
                                         Case{GridMode::Affine, 16, 17},
                                         Case{GridMode::Affine, 61, 35},
                                         Case{GridMode::ExposureChroma, 1, 3},
                                         Case{GridMode::ExposureChroma, 15, 16},
                                         Case{GridMode::ExposureChroma, 53, 41},
                                         Case{GridMode::ExposureChroma, 300, 20}),
                         name_of);

TEST_P(GridSlice, AgreesWithFloat64) {
  Problem p = make_problem(GetParam().mode, GetParam().width, GetParam().height);
  // Some pixels beyond either end of the levels, and black ones.
  for (size_t i = 0; i < p.image.size(); i += 7) p.image[i] = i % 2 == 0 ? 0 : 1.4;
  Bench bench(p.mode, 3);
  bench.begin(appearance_step(0, 0));
  bench.set(p);
  const Tensor image = bench.upload_floats(p.image);
  const Tensor shown = Tensor::full(*bench.device, Shape{p.image.size()}, Dtype::F32, 7, "test");
  bench.grids.forward(bench.frame(image, p.width, p.height), shown);
  const std::vector<float> got = bench.read_blocking(shown);
  const size_t plane = p.image.size() / 3;
  for (int y = 0; y < p.height; ++y) {
    for (int x = 0; x < p.width; ++x) {
      const auto wanted = reference_pixel(p, x, y, color_at(p, x, y));
      for (size_t k = 0; k < 3; ++k) {
        ASSERT_NEAR(got[k * plane + size_t(y) * p.width + x], wanted[k], 2e-5) << x << " " << y;
      }
    }
  }
}

TEST_P(GridSlice, GradientsAgreeWithCentralDifferences) {
  Problem p = make_problem(GetParam().mode, GetParam().width, GetParam().height);
  Bench bench(p.mode, 3);
  bench.begin(appearance_step(0, 0));
  bench.set(p);
  const Tensor image = bench.upload_floats(p.image);
  const Tensor d_image = bench.upload_floats(p.weights);
  bench.grids.backward(bench.frame(image, p.width, p.height), d_image);
  const std::vector<float> d_grid = bench.read_blocking(bench.grids.gradient());
  const std::vector<float> d_pixels = bench.read_blocking(d_image);
  const auto expect_near = [](double got, double wanted, double largest, size_t i) {
    EXPECT_NEAR(got, wanted, 1e-3 * std::max(std::abs(wanted), 1e-2 * largest)) << i;
  };
  const double h = 1e-4;
  // The grid: every 41st cell of every channel. Linear in A, and smooth in exposure and latents.
  double largest = 0;
  for (const float d : d_grid) largest = std::max(largest, std::abs(double{d}));
  ASSERT_GT(largest, 0);
  for (size_t i = 0; i < p.grid.size(); i += 41) {
    const double value = p.grid[i];
    p.grid[i] = value + h;
    const double above = loss_of(p);
    p.grid[i] = value - h;
    const double below = loss_of(p);
    p.grid[i] = value;
    expect_near(d_grid[i], (above - below) / (2 * h), largest, i);
  }
  // The image, with the guide: away from where a level begins and from the clamp.
  largest = 0;
  for (const float d : d_pixels) largest = std::max(largest, std::abs(double{d}));
  const size_t plane = p.image.size() / 3;
  size_t n_compared = 0;
  for (size_t i = 0; i < plane; i += 1 + plane / 150) {
    const int x = static_cast<int>(i % p.width), y = static_cast<int>(i / p.width);
    const auto rgb = color_at(p, x, y);
    const double level = 7 * luma_of(rgb);
    if (std::abs(level - std::round(level)) < 1e-2) continue;
    const auto out = reference_pixel(p, x, y, rgb);
    const auto held = [](double v) { return v < 0.01 || v > 0.99; };
    if (p.mode != GridMode::Affine && std::ranges::any_of(out, held)) continue;
    ++n_compared;
    for (size_t k = 0; k < 3; ++k) {
      double& value = p.image[k * plane + i];
      const double was = value;
      value = was + h;
      const double above = loss_at(p, x, y);
      value = was - h;
      const double below = loss_at(p, x, y);
      value = was;
      expect_near(d_pixels[k * plane + i], (above - below) / (2 * h), largest, i);
    }
  }
  EXPECT_GE(n_compared, std::min<size_t>(plane, 100) / 3);
}

TEST(GridSliceEdges, BeyondTheClampOnlyGradientsThatLeadInsidePass) {
  Problem p = make_problem(GridMode::ExposureChroma, 2, 2);
  std::fill(p.grid.begin(), p.grid.end(), 0.0);
  p.image.assign(12, 1.5);  // shown as 1
  p.weights = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
  Bench bench(p.mode, 1);
  bench.begin(appearance_step(0, 0));
  bench.set(p);
  const Tensor image = bench.upload_floats(p.image), d_image = bench.upload_floats(p.weights);
  bench.grids.backward(bench.frame(image, 2, 2), d_image);
  const std::vector<float> got = bench.read_blocking(d_image);
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(got[i], i % 2 == 0 ? 1 : 0, 1e-4) << i;
}

TEST(GridSliceEdges, WhatIsNotFiniteIsShownAsGrey) {
  Problem p = make_problem(GridMode::Affine, 3, 2);
  p.image[0] = INFINITY;
  Bench bench(p.mode, 1);
  bench.begin(appearance_step(0, 0));
  bench.set(p);
  const Tensor image = bench.upload_floats(p.image);
  const Tensor shown = bench.upload_floats(p.weights);
  bench.grids.forward(bench.frame(image, 3, 2), shown);
  EXPECT_EQ(bench.read_blocking(shown)[0], 0.5f);
}

TEST(GridSliceEdges, TwoRunsGiveTheSameBits) {
  const Problem p = make_problem(GridMode::ExposureChroma, 100, 70);
  std::vector<float> runs[2];
  for (auto& run : runs) {
    Bench bench(p.mode, 1);
    bench.begin(appearance_step(0, 0));
    bench.set(p);
    const Tensor image = bench.upload_floats(p.image), d_image = bench.upload_floats(p.weights);
    bench.grids.backward(bench.frame(image, 100, 70), d_image);
    run = bench.read_blocking(bench.grids.gradient());
  }
  EXPECT_EQ(runs[0], runs[1]);
}

// --- the update ---

/// Values, moments and offset in double precision.
struct Reference {
  GridMode mode;
  std::vector<double> value, first, second, offset = std::vector<double>(12);

  double total_variation(double weight, uint32_t n_images) const {
    double sum = 0;
    for (uint32_t c = 0; c < channels_of(mode); ++c) {
      for (int z = 0; z < 8; ++z) {
        for (int y = 0; y < 16; ++y) {
          for (int x = 0; x < 16; ++x) {
            const auto square = [&](size_t other) {
              const double d = value[cell_of(c, z, y, x)] - value[other];
              return d * d;
            };
            if (x > 0) sum += square(cell_of(c, z, y, x - 1)) / (8 * 16 * 15);
            if (y > 0) sum += square(cell_of(c, z, y - 1, x)) / (8 * 15 * 16);
            if (z > 0) sum += square(cell_of(c, z - 1, y, x)) / (7 * 16 * 16);
          }
        }
      }
    }
    return weight * sum / (channels_of(mode) * n_images);
  }
};

class GridUpdate : public testing::TestWithParam<GridMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, GridUpdate,
                         testing::Values(GridMode::Affine, GridMode::ExposureChroma));

// From moments of 0 the first moment is a tenth of the gradient.
TEST_P(GridUpdate, AddsTheGradientOfTheTotalVariation) {
  const Problem p = make_problem(GetParam(), 8, 8);
  Bench bench(p.mode, 3);
  bench.begin(appearance_step(0, 0));
  bench.set(p);
  bench.grids.gradient().fill_(0);
  bench.grids.update(bench.step, bench.control);
  const std::vector<float> slot = bench.read_blocking(bench.grids.slot_of_bound());
  Reference reference = {p.mode, p.grid, {}, {}};
  const double h = 1e-3;
  double largest = 0;
  for (size_t i = 0; i < p.grid.size(); ++i) {
    largest = std::max(largest, 10.0 * std::abs(slot[p.grid.size() + i]));
  }
  ASSERT_GT(largest, 0);
  for (size_t i = 0; i < p.grid.size(); i += 131) {
    double& value = reference.value[i];
    const double was = value;
    value = was + h;
    const double above = reference.total_variation(10, 3);
    value = was - h;
    const double below = reference.total_variation(10, 3);
    value = was;
    EXPECT_NEAR(10 * slot[p.grid.size() + i], (above - below) / (2 * h), 1e-3 * largest) << i;
  }
}

TEST_P(GridUpdate, IsAdamWithTheMomentsDecayedByWhatWasMissedAndKeepsMeans) {
  const Problem p = make_problem(GetParam(), 8, 8);
  const size_t n = p.grid.size();
  constexpr uint32_t kImages = 3;
  Bench bench(p.mode, kImages);
  bench.begin(appearance_step(0, 0));
  bench.set(p);
  Reference r = {p.mode, p.grid, std::vector<double>(n), std::vector<double>(n), p.offset};
  uint32_t last = 0;
  for (const uint32_t updates : {0u, 1u, 6u, 20u}) {
    AppearanceStep step = appearance_step(0, updates);
    step.grid_tv = 0;  // its gradient has a test of its own
    bench.begin(step);
    std::vector<double> gradient;
    for (uint32_t i = 0; i < n; ++i) gradient.push_back(0.01 * (uniform(i, 40 + updates) - 0.4));
    bench.grids.gradient().upload(floats(gradient));
    bench.grids.update(bench.step, bench.control);
    for (uint32_t c = 0; c < channels_of(p.mode); ++c) {
      double before = 0, after = 0;
      for (size_t i = 2048 * c; i < 2048 * (c + 1); ++i) {
        const double g = gradient[i];
        r.first[i] = 0.9 * r.first[i] * std::pow(0.9, updates - last) + 0.1 * g;
        r.second[i] = 0.999 * r.second[i] * std::pow(0.999, updates - last) + 0.001 * g * g;
        before += r.value[i];
        r.value[i] -= 2e-3 * r.first[i] / (std::sqrt(r.second[i]) * 1.5 + 1e-15);
        after += r.value[i];
      }
      if (p.mode == GridMode::Affine) {
        r.offset[c] -= (after - before) / (2048.0 * kImages);
      } else {
        for (size_t i = 2048 * c; i < 2048 * (c + 1); ++i) r.value[i] -= after / 2048;
      }
    }
    last = updates + 1;
  }
  const GridsSnapshot snapshot = bench.grids.snapshot();
  bench.wait_blocking();
  const std::vector<float> slot = snapshot.of(0), offset = snapshot.offset();
  for (size_t i = 0; i < n; ++i) {
    ASSERT_NEAR(slot[i], r.value[i], 1e-5) << i;
    ASSERT_NEAR(slot[n + i], r.first[i], 1e-7) << i;
    ASSERT_NEAR(slot[2 * n + i], r.second[i], 1e-10) << i;
  }
  for (size_t c = 0; c < channels_of(p.mode); ++c) EXPECT_NEAR(offset[c], r.offset[c], 1e-6) << c;
  EXPECT_EQ(snapshot.last_updates(), (std::vector<uint32_t>{21, 0, 0}));
}

TEST_P(GridUpdate, SkipsAGradientThatIsNotFinite) {
  const Problem p = make_problem(GetParam(), 8, 8);
  Bench bench(p.mode, 1);
  bench.begin(appearance_step(0, 0));
  bench.set(p);
  std::vector<double> gradient(p.grid.size(), 1e-3);
  gradient[5] = NAN;
  gradient[6] = INFINITY;
  bench.grids.gradient().upload(floats(gradient));
  bench.grids.update(bench.step, bench.control);
  for (const float v : bench.read_blocking(bench.grids.slot_of_bound())) {
    ASSERT_TRUE(std::isfinite(v));
  }
}

TEST_P(GridUpdate, NothingIsWrittenForARefusedStep) {
  const Problem p = make_problem(GetParam(), 20, 10);
  Bench bench(p.mode, 2);
  bench.begin(appearance_step(0, 0), /*accepted=*/false);
  bench.set(p);
  const GridsSnapshot before = bench.grids.snapshot();
  const Tensor image = bench.upload_floats(p.image), d_image = bench.upload_floats(p.weights);
  const Tensor shown = Tensor::full(*bench.device, Shape{p.image.size()}, Dtype::F32, 7, "test");
  bench.grids.gradient().fill_(7);
  bench.grids.forward(bench.frame(image, 20, 10), shown);
  bench.grids.backward(bench.frame(image, 20, 10), d_image);
  bench.grids.update(bench.step, bench.control);
  const GridsSnapshot after = bench.grids.snapshot();
  for (const float v : bench.read_blocking(shown)) ASSERT_EQ(v, 7.0f);
  for (const float v : bench.read_blocking(bench.grids.gradient())) ASSERT_EQ(v, 7.0f);
  EXPECT_EQ(bench.read_blocking(d_image), floats(p.weights));
  EXPECT_EQ(after.of(0), before.of(0));
  EXPECT_EQ(after.offset(), before.offset());
  EXPECT_EQ(after.last_updates(), before.last_updates());
}

// --- residency ---

constexpr uint32_t kImages = 20;

/// Steps over random permutations of the images, as a trainer makes them: three steps ahead of the
/// device. Every ninth step is refused, with the two queued behind it, and they are done again.
struct Residency {
  std::vector<std::vector<float>> grids;
  std::vector<float> offset;
  std::vector<uint32_t> last;
  uint64_t n_loads, n_write_backs, n_waits;
  uint32_t n_slots;
};
uint32_t image_of(uint32_t step) {
  std::vector<std::pair<double, uint32_t>> order;
  for (uint32_t i = 0; i < kImages; ++i) order.push_back({uniform(i, 500 + step / kImages), i});
  std::ranges::sort(order);
  return order[step % kImages].second;
}
Residency residency_blocking(GridMode mode, uint64_t budget) {
  Bench bench(mode, kImages, budget);
  const Problem p = make_problem(mode, 24, 20);
  const Tensor image = bench.upload_floats(p.image);
  const Tensor shown = bench.upload_floats(p.image), d_image = bench.upload_floats(p.weights);
  const uint64_t before = bench.device->ledger().count_except_pacing();
  std::deque<Point> points;
  const auto attempt = [&](uint32_t step, bool accepted) {
    if (points.size() == 3) {
      bench.device->wait_blocking(points.front(), {WaitReason::Pacing, "test.pacing"}).or_raise();
      points.pop_front();
    }
    bench.begin(appearance_step(image_of(step), step), accepted);
    const uint32_t upcoming[] = {image_of(step + 1), image_of(step + 2)};
    bench.grids.bind(image_of(step), upcoming);
    d_image.upload(floats(p.weights));
    bench.grids.forward(bench.frame(image, 24, 20), shown);
    bench.grids.backward(bench.frame(shown, 24, 20), d_image);
    bench.grids.update(bench.step, bench.control);
    points.push_back(bench.device->submit());
  };
  for (uint32_t step = 0; step < 3 * kImages + 7; ++step) {
    if (step % 9 == 8) {
      for (uint32_t i = 0; i < 3; ++i) attempt(step + i, false);
    }
    attempt(step, true);
  }
  Residency run;
  run.n_waits = bench.device->ledger().count_except_pacing() - before;
  const GridsSnapshot snapshot = bench.grids.snapshot();
  bench.wait_blocking();
  EXPECT_TRUE(snapshot.ready());
  for (uint32_t i = 0; i < kImages; ++i) run.grids.push_back(snapshot.of(i));
  run.offset = snapshot.offset();
  run.last = snapshot.last_updates();
  run.n_loads = bench.grids.n_loads();
  run.n_write_backs = bench.grids.n_write_backs();
  run.n_slots = bench.grids.n_slots();
  return run;
}

// The affine mode, whose shared offset hangs on the order of all images' updates.
TEST(GridResidency, InFewSlotsEndsInTheStateOfAllOnTheDeviceWithoutAWait) {
  const Residency all = residency_blocking(GridMode::Affine, 1ull << 30);
  const Residency few = residency_blocking(GridMode::Affine, 0);
  EXPECT_EQ(all.n_slots, kImages);
  EXPECT_EQ(all.n_loads + all.n_write_backs, 0u);
  EXPECT_EQ(few.n_slots, BilateralGrids::kMinSlots) << "no jump, so no further slot";
  EXPECT_GT(few.n_loads, kImages / 2);
  EXPECT_EQ(all.n_waits + few.n_waits, 0u);
  EXPECT_EQ(few.grids, all.grids);
  EXPECT_EQ(few.offset, all.offset);
  EXPECT_EQ(few.last, all.last);
  for (uint32_t i = 0; i < kImages; ++i) EXPECT_GT(all.last[i], 0u) << i;
}

TEST(GridResidency, AJumpThatNobodyAnnouncedTakesMemoryAndDoesNotWait) {
  Bench bench(GridMode::ExposureChroma, kImages, 0, "cpu:1,lazy");
  const uint64_t before = bench.device->ledger().count_except_pacing();
  for (uint32_t image = 0; image < kImages; ++image) bench.grids.bind(image, {});
  EXPECT_EQ(bench.device->ledger().count_except_pacing(), before);
  EXPECT_GT(bench.grids.n_slots(), BilateralGrids::kMinSlots);
}

TEST(GridResidency, OfAnImageThatWasNeverShownIsTheIdentity) {
  Bench bench(GridMode::Affine, 2);
  bench.grids.bind(0, {});
  const GridsSnapshot snapshot = bench.grids.snapshot();
  bench.wait_blocking();
  EXPECT_EQ(snapshot.of(0), snapshot.of(1));
  EXPECT_EQ(snapshot.of(1)[0], 1.0f);
  EXPECT_EQ(snapshot.of(1)[2048], 0.0f);
  EXPECT_EQ(snapshot.of(1)[2048 * 10], 1.0f);
}

}  // namespace
}  // namespace millrace::test
