// Scenario: what a step adds to the statistics of its rows, and what MRNF changes in its Adam step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>

#include "simulated/substitute.h"
#include "splat/render.h"
#include "splat/scene.h"

namespace millrace::test {
namespace {

constexpr uint32_t kRows = 60;
constexpr double kNear = 0.01;

CameraRecord record_of(const Camera& camera) {
  CameraRecord record = {};
  const auto& m = camera.world_to_camera;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) record.rotation[3 * i + j] = static_cast<float>(m[4 * i + j]);
    record.translation[i] = static_cast<float>(m[4 * i + 3]);
    record.centre[i] = static_cast<float>(-(m[i] * m[3] + m[4 + i] * m[7] + m[8 + i] * m[11]));
  }
  record.fx = static_cast<float>(camera.fx);
  record.fy = static_cast<float>(camera.fy);
  record.cx = static_cast<float>(camera.cx);
  record.cy = static_cast<float>(camera.cy);
  record.near_plane = static_cast<float>(kNear);
  record.width = camera.width;
  record.height = camera.height;
  return record;
}

struct Outcome {
  std::vector<float> statistics, geometry, first, second, alpha;
  float stat(uint32_t row, uint32_t lane) const { return statistics[kStatisticLanes * row + lane]; }
  float lane(uint32_t row, uint32_t l) const { return geometry[kGeometryLanes * row + l]; }
  float moment(uint32_t row, uint32_t l) const { return first[kGeometryLanes * row + l]; }
};

// One step on one view whose image has gradient 0.01, with the block and bounds as `change` leaves
// them; shares are `share` and second moments `second` to begin with.
Outcome step_blocking(const std::function<void(StepBlock&, SceneBounds&)>& change, float share = 0,
                      float second = 0) {
  const TestScene scene = test_scene(kRows, 2);
  const auto device = make_checked(open_device(simulated::test_device("cpu:2")).or_raise());
  Model model = make_model(*device, scene.cloud, scene.cloud.sh_degree, kRows);
  keep_statistics(model, kRows);
  if (share > 0) {
    std::vector<float> rows(kStatisticLanes * kRows);
    for (uint32_t i = 0; i < kRows; ++i) rows[kStatisticLanes * i + kStatShare] = share;
    model.statistics.upload(to_row_blocks(rows, kRows, kStatisticLanes));
  }
  model.geometry.second_moment.fill_(second);
  StepBlock block = {};
  block.sh_degree = 3;
  block.rate_means = block.rate_scales = block.rate_rotations = 1e-3f;
  block.rate_opacities = block.rate_sh0 = block.rate_sh_rest = 1e-3f;
  block.inv_sqrt_bias2 = 1;
  SceneBounds bounds = {};
  change(block, bounds);
  constexpr auto kFirst = static_cast<int64_t>(offsetof(Control, bounds) / 4);
  std::vector<uint32_t> words(sizeof(bounds) / 4);
  std::memcpy(words.data(), &bounds, sizeof(bounds));
  model.control.slice(0, kFirst, kFirst + static_cast<int64_t>(words.size())).upload(words);

  const FrameSize size = {scene.camera.width, scene.camera.height};
  const Tensor cameras = make_camera_table(*device, {record_of(scene.camera)});
  const Tensor step = upload_step_block(*device, block);
  Workspace workspace;
  workspace.rows = make_row_buffers(*device, model.row_capacity);
  workspace.pixels = make_pixel_buffers(*device, {size}, {.gradients = true, .depth = true});
  workspace.instances = make_instance_buffers(*device, kRows * workspace.pixels.n_tiles,
                                              workspace.pixels.n_tiles, true);
  const FrameContext frame = {model, cameras, step, workspace, size, 0, true};
  render_forward(frame);
  workspace.pixels.d_image.fill_(0.01);
  blend_backward(frame);
  backward_with_adam(frame);
  commit(model, step, CommitMode::Step);
  const ModelSnapshot snapshot = read_model_later(model, kRows, true);
  const Ticket statistics = read_later(model.statistics);
  const Ticket alpha = read_later(workspace.pixels.depth_alpha);
  device->wait_blocking(device->submit(), {WaitReason::Test, "test.step"}).or_raise();
  Outcome out;
  out.geometry = rows_of(snapshot, 0);
  out.first = rows_of(snapshot, 1);
  out.second = rows_of(snapshot, 2);
  out.statistics = from_row_blocks(reinterpret_cast<const float*>(statistics.bytes().data()), 0,
                                   kRows, kStatisticLanes);
  const size_t n = size_t{size.width} * size.height;
  const auto* alphas = reinterpret_cast<const float*>(alpha.bytes().data()) + n;
  out.alpha.assign(alphas, alphas + n);
  return out;
}

void nothing(StepBlock&, SceneBounds&) {}

TEST(Statistics, SumUpTheBlendWeightsOfTheView) {
  const Outcome out = step_blocking(nothing);
  double weights = 0, alphas = 0;
  for (uint32_t row = 0; row < kRows; ++row) weights += out.stat(row, kStatWeight);
  for (const float a : out.alpha) alphas += a;
  EXPECT_GT(alphas, 100);
  EXPECT_NEAR(weights, alphas, 1e-4 * alphas);
}

TEST(Statistics, HoldTheShareOfTheScreen) {
  const TestScene scene = test_scene(kRows, 2);
  const CameraRecord camera = record_of(scene.camera);
  const Outcome out = step_blocking(nothing);
  int n_seen = 0;
  for (uint32_t row = 0; row < kRows; ++row) {
    if (out.stat(row, kStatWeight) == 0) continue;
    ++n_seen;
    const float* s = &scene.cloud.log_scales[3 * row];
    const double o = 1 / (1 + std::exp(-double{scene.cloud.opacities[row]}));
    const double r = std::exp(double{std::max({s[0], s[1], s[2]})}) *
                     std::sqrt(2 * std::log(std::max(255 * o, 1.0)));
    double d = 0;
    for (uint32_t k = 0; k < 3; ++k) {
      const double v = double{scene.cloud.means[3 * row + k]} - camera.centre[k];
      d += v * v;
    }
    d = std::sqrt(d);
    const double share = r / (std::max(d, r) + std::sqrt(std::max(d * d - r * r, 0.0)));
    EXPECT_NEAR(out.stat(row, kStatShare), share, 1e-4) << row;
  }
  EXPECT_GT(n_seen, 40);
}

TEST(Statistics, KeepTheLargestShareAndNothingBehindAClosedGate) {
  const Outcome plain = step_blocking(nothing), out = step_blocking(nothing, 0.5f);
  int n_larger = 0;
  for (uint32_t row = 0; row < kRows; ++row) {
    n_larger += plain.stat(row, kStatShare) > 0.5f;
    EXPECT_EQ(out.stat(row, kStatShare), std::max(plain.stat(row, kStatShare), 0.5f));
  }
  EXPECT_GT(n_larger, 0);
  EXPECT_LT(n_larger, static_cast<int>(kRows));
  const Outcome refused =
      step_blocking([](StepBlock& block, SceneBounds&) { block.epoch = 1; }, 0.5f);
  for (uint32_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(refused.stat(row, kStatWeight), 0);
    EXPECT_EQ(refused.stat(row, kStatShare), 0.5f);
  }
}

TEST(MrnfAdam, StepsOfTheMeansAreInMedianSizesAndLargerFarFromTheCameras) {
  const TestScene scene = test_scene(kRows, 2);
  const Outcome plain = step_blocking(nothing);
  const auto sized = [](StepBlock& block, SceneBounds& bounds) {
    block.mrnf.modes = kMrnfOn;
    bounds.median_size = 4;
  };
  const Outcome four = step_blocking(sized);
  const Outcome far = step_blocking([&](StepBlock& block, SceneBounds& bounds) {
    sized(block, bounds);
    block.mrnf.far_rate_limit = 3;
    bounds.hull_radius = 1e-3f;  // all rows are outside
    bounds.hull_centre[0] = 50;
    bounds.median_extent = 0.02f;
  });
  int n_limited = 0, n_between = 0;
  for (uint32_t row = 0; row < kRows; ++row) {
    const float* s = &scene.cloud.log_scales[3 * row];
    const double ratio = std::exp((double{s[0]} + s[1] + s[2]) / 3) / 0.02;
    const double factor = std::clamp(ratio, 1.0, 3.0);
    n_limited += factor == 3;
    n_between += factor > 1 && factor < 3;
    for (uint32_t k = 0; k < 3; ++k) {
      const float begin = scene.cloud.means[3 * row + k];
      const double moved = plain.lane(row, k) - begin;
      EXPECT_NEAR(four.lane(row, k) - begin, 4 * moved, 4e-6);
      EXPECT_NEAR(far.lane(row, k) - begin, 4 * factor * moved, 1e-5) << row << " " << factor;
    }
    for (uint32_t l = kLaneScale; l < kGeometryLanes; ++l) {
      EXPECT_EQ(far.lane(row, l), plain.lane(row, l));
    }
  }
  EXPECT_GT(n_limited, 3);
  EXPECT_GT(n_between, 0);
}

TEST(MrnfAdam, RowsTooLargeOnTheScreenAreDrawnSmallerThroughTheFirstMomentAlone) {
  constexpr float kSecond = 4;
  const auto limit = [](float share) {
    return [share](StepBlock& block, SceneBounds&) {
      block.mrnf.screen_share_limit = share;
      block.mrnf.screen_share_penalty = 0.5f;
    };
  };
  const Outcome plain = step_blocking(nothing, 0.8f, kSecond);
  const Outcome drawn = step_blocking(limit(0.2f), 0.8f, kSecond);
  EXPECT_EQ(drawn.second, plain.second);
  for (uint32_t row = 0; row < kRows; ++row) {
    for (uint32_t l = 0; l < kGeometryLanes; ++l) {
      // (1 - beta1) penalty log2(0.8 / 0.2) sqrt(4).
      const double push = l >= kLaneScale && l < kLaneRotation ? 0.1 * 0.5 * 2 * 2 : 0;
      EXPECT_NEAR(drawn.moment(row, l) - plain.moment(row, l), push, 1e-5) << row << " " << l;
    }
  }
  EXPECT_EQ(step_blocking(limit(0.9f), 0.8f, kSecond).first, plain.first);
}

}  // namespace
}  // namespace millrace::test
