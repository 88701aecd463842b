// The hot kernels of every instruction set that this processor has: against those of the narrowest
// one, and on inputs that are not finite. Against float64 the tests of splat and loss hold them,
// which run once per instruction set (tests/CMakeLists.txt).
//
// What is not finite is told by bit patterns: compilers may assume numbers in arithmetic.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "kernels/hot_frame.h"

namespace millrace::test {
namespace {

using kernels::HotKernels;

std::vector<std::string> usable() {
  std::vector<std::string> names;
  for (const char* isa : {"generic", "v2", "v3", "v4"}) {
    if (kernels::hot_kernels_of(isa)) names.emplace_back(isa);
  }
  return names;
}

const HotFrame& narrowest() {
  static const HotFrame frame = HotFrame::make(*kernels::hot_kernels_of(usable()[0].c_str()));
  return frame;
}

bool finite_bits(float value) {
  return (std::bit_cast<uint32_t>(value) & 0x7f800000u) != 0x7f800000u;
}

bool equal_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

const float kBad[] = {
    std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(),
    std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};

// |a - b| <= rtol max(|a|, |b|) + atol; rtol is that of CONTRACTS.md for sums of n terms.
void expect_near(const float* a, const float* b, size_t count, double n, double atol,
                 const char* what) {
  const double rtol = 1e-5 * std::max(1.0, std::log2(n));
  size_t n_wrong = 0;
  double worst = 0;
  for (size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(finite_bits(a[i]) && finite_bits(b[i])) << what << " " << i;
    const double x = a[i], y = b[i];
    const double excess = std::abs(x - y) / (rtol * std::max(std::abs(x), std::abs(y)) + atol);
    n_wrong += excess > 1;
    worst = std::max(worst, excess);
  }
  EXPECT_LE(worst, 1) << what << ": " << n_wrong << " of " << count << " beyond the tolerance";
}
void expect_near(const std::vector<float>& a, const std::vector<float>& b, double n, double atol,
                 const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  expect_near(a.data(), b.data(), a.size(), n, atol, what);
}

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max<double>(largest, std::abs(value));
  return largest;
}

class HotKernelsOf : public testing::TestWithParam<std::string> {
 protected:
  const HotKernels& hot() const { return *kernels::hot_kernels_of(GetParam().c_str()); }
  // The frame of the narrowest vectors, for one function to be done again.
  HotFrame frame_ = narrowest();
};

TEST_P(HotKernelsOf, AreAsWideAsTheirVectors) {
  const int width = GetParam() == "v4" ? 16 : GetParam() == "v3" ? 8 : 4;
  EXPECT_EQ(hot().width, width);
  EXPECT_EQ(hot().name, "x86-64-" + GetParam());
}

TEST_P(HotKernelsOf, ProjectAlike) {
  frame_.project(hot());
  const HotFrame& other = narrowest();
  uint32_t n_drawn = 0;
  for (uint32_t row = 0; row < HotFrame::kRows; ++row) {
    EXPECT_EQ(frame_.n_tiles[row] != 0, other.depth_key[row] != ~0u) << row;
    if (frame_.n_tiles[row] == 0) continue;
    ++n_drawn;
    EXPECT_EQ(frame_.depth_key[row], std::bit_cast<uint32_t>(frame_.projected[row].depth));
    const auto* a = reinterpret_cast<const float*>(&frame_.projected[row]);
    const auto* b = reinterpret_cast<const float*>(&other.projected[row]);
    expect_near(a, b, sizeof(Projected) / sizeof(float), 16, 1e-6, "projected");
  }
  EXPECT_GT(n_drawn, HotFrame::kRows / 2);
}

TEST_P(HotKernelsOf, BlendAlike) {
  frame_.blend_forward(hot());
  const HotFrame& other = narrowest();
  EXPECT_EQ(frame_.last, other.last);
  expect_near(frame_.image, other.image, 64, 1e-6, "image");
  expect_near(frame_.transmittance, other.transmittance, 64, 1e-6, "transmittance");
  expect_near(frame_.depth_alpha, other.depth_alpha, 64, 1e-6, "depth and alpha");
}

// Sums over a tile's pixels cancel: what counts is the size of their terms.
TEST_P(HotKernelsOf, BlendBackAlike) {
  frame_.blend_backward(hot());
  const auto* a = reinterpret_cast<const float*>(frame_.gradients.data());
  const auto* b = reinterpret_cast<const float*>(narrowest().gradients.data());
  constexpr size_t kFields = sizeof(InstanceGradient) / sizeof(float);
  const size_t n = frame_.gradients.size();
  ASSERT_GT(n, 300u);
  for (size_t field = 0; field < kFields; ++field) {
    double largest = 0;
    for (size_t i = 0; i < n; ++i) {
      largest = std::max<double>(largest, std::abs(b[kFields * i + field]));
    }
    for (size_t i = 0; i < n; ++i) {
      expect_near(a + kFields * i + field, b + kFields * i + field, 1, 256, 2e-6 * largest,
                  "gradient");
    }
  }
}

TEST_P(HotKernelsOf, MeasureTheLossAlike) {
  frame_.photometric_forward(hot());
  const HotFrame& other = narrowest();
  // The sum of a band's SSIM may cancel: an error of a pixel, times the root of their number.
  expect_near(frame_.sums, other.sums, HotFrame::kPixels, 1e-3, "sums");
  // A variance is a difference of means of squares, exact to 1e-7 of 1, and divides with C2 = 9e-4.
  expect_near(frame_.maps, other.maps, 121, 1e-4 * largest_of(other.maps), "maps");
  frame_ = narrowest();
  frame_.photometric_backward(hot());
  expect_near(frame_.d_image, other.d_image, 121, 1e-5 * largest_of(other.d_image),
              "image gradient");
}

TEST_P(HotKernelsOf, GoBackToParametersAlike) {
  frame_.accumulate(hot());
  const HotFrame& other = narrowest();
  for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) {
    double largest = 0;
    for (uint32_t row = 0; row < HotFrame::kRows; ++row) {
      const float d = other.d_geometry[row_index(row, lane, kGeometryLanes)];
      largest = std::max<double>(largest, std::abs(d));
    }
    for (uint32_t row = 0; row < HotFrame::kRows; ++row) {
      const uint64_t i = row_index(row, lane, kGeometryLanes);
      expect_near(&frame_.d_geometry[i], &other.d_geometry[i], 1, 64, 1e-5 * largest, "gradient");
    }
  }
  expect_near(frame_.d_sh_rest, other.d_sh_rest, 16, 1e-7, "SH gradient");
}

TEST_P(HotKernelsOf, StepAlike) {
  frame_.adam(hot());
  HotFrame other = narrowest();
  other.adam(*kernels::hot_kernels_of(usable()[0].c_str()));
  EXPECT_EQ(frame_.skipped, 0u);
  expect_near(frame_.geometry, other.geometry, 1, 1e-6, "geometry");
  expect_near(frame_.geometry_first, other.geometry_first, 1, 1e-9, "first moment");
  expect_near(frame_.geometry_second, other.geometry_second, 1, 1e-12, "second moment");
  expect_near(frame_.sh_rest, other.sh_rest, 1, 1e-6, "SH");
}

// ---- What is not finite -------------------------------------------------------------------------

TEST_P(HotKernelsOf, DoNotDrawARowThatIsNotFiniteAndLeaveTheOthersAlone) {
  HotFrame clean = narrowest();
  clean.project(hot());
  const auto expect_one_gone = [&](uint32_t row, float bad, uint32_t lane) {
    frame_.project(hot());
    EXPECT_EQ(frame_.n_tiles[row], 0u) << "lane " << lane << " = " << bad;
    EXPECT_EQ(frame_.depth_key[row], ~0u) << "lane " << lane << " = " << bad;
    for (uint32_t i = 0; i < HotFrame::kRows; ++i) {
      if (i == row) continue;
      ASSERT_EQ(frame_.n_tiles[i], clean.n_tiles[i]) << i;
      ASSERT_EQ(std::memcmp(&frame_.projected[i], &clean.projected[i], sizeof(Projected)), 0) << i;
    }
  };
  for (const float bad : kBad) {
    for (uint32_t lane = 0; lane < kGeometryLanes + HotFrame::kRestLanes; ++lane) {
      // A scale of zero or a huge one is drawable.
      const bool is_scale = lane >= kLaneScale && lane < kLaneRotation;
      if (is_scale && std::isinf(bad)) continue;
      const uint32_t row = 100 + lane;  // one of every place in a vector
      if (clean.n_tiles[row] == 0) continue;
      float& value =
          lane < kGeometryLanes
              ? frame_.geometry[row_index(row, lane, kGeometryLanes)]
              : frame_.sh_rest[row_index(row, lane - kGeometryLanes, HotFrame::kRestLanes)];
      const float before = value;
      value = bad;
      expect_one_gone(row, bad, lane);
      value = before;
    }
  }
}

// The pixels of a vector, a block of 4 by up to 4, share their fate: zero times NaN is NaN.
TEST_P(HotKernelsOf, PassABadPixelToThoseThatTouchItsBlockAndToNoOther) {
  HotFrame clean = narrowest();
  clean.blend_backward(hot());
  constexpr uint32_t kPixel = 20 * HotFrame::kWidthPx + 21, kTile = HotFrame::kTilesX + 1;
  for (const float bad : kBad) {
    frame_.d_image = narrowest().d_image;
    frame_.d_image[kPixel] = bad;  // of red
    frame_.blend_backward(hot());
    size_t n_touching = 0;
    for (size_t slot = 0; slot < clean.gradients.size(); ++slot) {
      const InstanceGradient &spoilt = frame_.gradients[slot], &whole = clean.gradients[slot];
      if (!finite_bits(spoilt.d_red)) {
        ++n_touching;
        EXPECT_FALSE(finite_bits(spoilt.d_opacity)) << slot;
        const Projected& g = frame_.projected[frame_.instance_row[slot]];
        EXPECT_LE(std::abs(g.x - 21.5f), g.extent_x + 3.1f) << slot;
        EXPECT_LE(std::abs(g.y - 20.5f), g.extent_y + 3.1f) << slot;
      } else {
        EXPECT_TRUE(equal_bits(spoilt.d_red, whole.d_red)) << slot;
      }
      EXPECT_TRUE(equal_bits(spoilt.d_green, whole.d_green)) << slot;
      EXPECT_TRUE(equal_bits(spoilt.weight, whole.weight)) << slot;
    }
    EXPECT_GT(n_touching, 3u);
    EXPECT_LE(n_touching, frame_.tile_ranges[2 * kTile + 1] - frame_.tile_ranges[2 * kTile]);
  }
}

TEST_P(HotKernelsOf, PassABadRenderToItsWindowAndNoFurther) {
  HotFrame clean = narrowest();
  clean.photometric_forward(hot());
  clean.photometric_backward(hot());
  constexpr int kX = 20, kY = 15, kWidth = HotFrame::kWidthPx;
  for (const float bad : kBad) {
    frame_.image = narrowest().image;
    frame_.image[kY * kWidth + kX] = bad;
    frame_.photometric_forward(hot());
    frame_.photometric_backward(hot());
    EXPECT_FALSE(finite_bits(frame_.sums[1])) << "SSIM";
    EXPECT_FALSE(finite_bits(frame_.sums[0])) << "L1";
    EXPECT_FALSE(finite_bits(frame_.d_image[kY * kWidth + kX]));
    for (uint32_t i = 0; i < 3 * HotFrame::kPixels; ++i) {
      const int x = static_cast<int>(i) % kWidth, y = static_cast<int>(i) / kWidth;
      if (std::abs(x - kX) <= 10 && std::abs(y - kY) <= 10) continue;
      ASSERT_TRUE(equal_bits(frame_.d_image[i], clean.d_image[i])) << x << " " << y;
    }
  }
}

// Rows with a bad gradient keep their bits, the others get theirs.
void expect_skipped(const HotFrame& frame, const HotFrame& clean, const HotFrame& before,
                    const std::vector<uint32_t>& rows) {
  EXPECT_EQ(frame.skipped, rows.size());
  const auto compare = [&](std::vector<float> HotFrame::*member, uint32_t lanes) {
    for (uint32_t row = 0; row < HotFrame::kRows; ++row) {
      const bool skipped = std::find(rows.begin(), rows.end(), row) != rows.end();
      const std::vector<float>& expected = (skipped ? before : clean).*member;
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        const uint64_t i = row_index(row, lane, lanes);
        ASSERT_TRUE(equal_bits((frame.*member)[i], expected[i]))
            << "row " << row << " lane " << lane;
      }
    }
  };
  for (auto member : {&HotFrame::geometry, &HotFrame::geometry_first, &HotFrame::geometry_second}) {
    compare(member, kGeometryLanes);
  }
  for (auto member : {&HotFrame::sh_rest, &HotFrame::sh_first, &HotFrame::sh_second}) {
    compare(member, HotFrame::kRestLanes);
  }
}

TEST_P(HotKernelsOf, SkipARowWhoseGradientIsNotFiniteInAnyLane) {
  HotFrame clean = narrowest();
  clean.adam(hot());
  ASSERT_EQ(clean.skipped, 0u);
  for (const float bad : kBad) {
    frame_ = narrowest();
    std::vector<uint32_t> rows;
    for (uint32_t lane = 0; lane < kGeometryLanes; ++lane) {
      rows.push_back(3 * lane + 1);
      frame_.d_geometry[row_index(rows.back(), lane, kGeometryLanes)] = bad;
    }
    for (uint32_t lane = 0; lane < HotFrame::kRestLanes; ++lane) {
      rows.push_back(100 + 3 * lane);
      frame_.d_sh_rest[row_index(rows.back(), lane, HotFrame::kRestLanes)] = bad;
    }
    rows.push_back(HotFrame::kRows - 1);
    frame_.d_geometry[row_index(rows.back(), kLaneOpacity, kGeometryLanes)] = bad;
    frame_.adam(hot());
    expect_skipped(frame_, clean, narrowest(), rows);
  }
}

TEST_P(HotKernelsOf, SkipARowOneOfWhoseInstancesIsNotFinite) {
  HotFrame clean = narrowest();
  clean.backward_adam(hot());
  ASSERT_EQ(clean.skipped, 0u);
  using Field = float InstanceGradient::*;
  const Field fields[] = {&InstanceGradient::d_x,       &InstanceGradient::d_y,
                          &InstanceGradient::half_yy11, &InstanceGradient::half_yy12,
                          &InstanceGradient::half_yy22, &InstanceGradient::d_opacity,
                          &InstanceGradient::d_red,     &InstanceGradient::d_green,
                          &InstanceGradient::d_blue,    &InstanceGradient::d_depth};
  for (const float bad : kBad) {
    frame_ = narrowest();
    std::vector<uint32_t> rows;
    uint32_t row = 5;
    for (const Field field : fields) {
      while (frame_.n_tiles[row] == 0) ++row;
      frame_.gradients[frame_.first_slot[row] + frame_.n_tiles[row] - 1].*field = bad;
      rows.push_back(row);
      row += 17;
    }
    frame_.backward_adam(hot());
    expect_skipped(frame_, clean, narrowest(), rows);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, HotKernelsOf, testing::ValuesIn(usable()),
                         [](const auto& info) { return info.param; });

// ---- The choice ---------------------------------------------------------------------------------

TEST(HotKernelsChoice, IsTheWidestOrTheOneThatTheEnvironmentNames) {
  const char* wanted = std::getenv("MILLRACE_ISA");
  const HotKernels* named = wanted ? kernels::hot_kernels_of(wanted) : nullptr;
  const HotKernels* widest = kernels::hot_kernels_of(usable().back().c_str());
  EXPECT_EQ(&kernels::hot_kernels(), named ? named : widest);
  if (wanted && !named) GTEST_SKIP() << "this processor has no x86-64-" << wanted;
}

TEST(HotKernelsChoice, KnowsNoOtherNames) {
  for (const char* name : {"", "v1", "v5", "avx2"}) {
    EXPECT_EQ(kernels::hot_kernels_of(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace millrace::test
