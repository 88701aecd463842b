// ViewRenderer: growth on overflow, repeatable images, and independence of the world's unit.
#include "train/view_renderer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "train/runner_bench.h"
#include "train/scene.h"

namespace millrace::test {
namespace {

constexpr std::array<float, 3> kBackground = {0.2f, 0.4f, 0.6f};

// The initial Gaussians of the tiny capture, large enough to cover the frame.
GaussianCloud large_cloud(const Dataset& dataset) {
  TrainOptions options = tiny_options(1);
  options.init_scaling = 1;
  return initial_cloud(dataset, options, nullptr);
}

struct Bench {
  std::unique_ptr<Device> device = make_checked(open_device("cpu:2").or_raise());
  Model model;
  explicit Bench(const GaussianCloud& cloud, uint64_t rows = 0)
      : model(make_model(*device, cloud, 3, rows ? rows : cloud.count())) {}
  std::vector<float> render_blocking(const Camera& camera, double near_plane) {
    ViewRenderer renderer(model, {frame_size(camera)}, false);
    return renderer.render_blocking(camera, near_plane, 0, kBackground).or_raise().color.pixels;
  }
};

TEST(ViewRenderer, RendersTheSameImageTwice) {
  Bench bench(large_cloud(tiny_dataset()));
  const Camera& camera = tiny_dataset().views[0].camera;
  ViewRenderer renderer(bench.model, {frame_size(camera)}, false);
  const auto first = renderer.render_blocking(camera, 0.01, 0, kBackground).or_raise();
  const auto second = renderer.render_blocking(camera, 0.01, 0, kBackground).or_raise();
  EXPECT_EQ(first.color.width, camera.width);
  EXPECT_EQ(first.color.height, camera.height);
  EXPECT_EQ(first.color.pixels, second.color.pixels);
}

TEST(ViewRenderer, DrawsAModelThatIsMarkedWithTheMipFilter) {
  GaussianCloud cloud = large_cloud(tiny_dataset());
  for (float& scale : cloud.log_scales) scale -= 4;
  const Camera& camera = tiny_dataset().views[0].camera;
  const auto sum = [&](bool mip_filter) {
    cloud.mip_filter = mip_filter;
    double total = 0;
    const std::vector<float> pixels = Bench(cloud).render_blocking(camera, 0.01);
    for (size_t i = 0; i < pixels.size(); ++i) total += std::abs(pixels[i] - kBackground[i % 3]);
    return total;
  };
  // Gaussians below a pixel: dilated they cover more than they should.
  EXPECT_LT(sum(true), 0.9 * sum(false));
}

TEST(ViewRenderer, GrowsWhenAFrameOutgrowsItsBuffers) {
  // Two huge Gaussians cover 12 tiles each; the first capacity is 8 instances a row, of 32 rows.
  GaussianCloud cloud = large_cloud(tiny_dataset());
  for (float& scale : cloud.log_scales) scale += 3;
  Bench small(cloud), roomy(cloud, 8 * cloud.count());
  const Camera& camera = tiny_dataset().views[0].camera;
  const std::vector<float> grown = small.render_blocking(camera, 0.01);
  EXPECT_EQ(grown, roomy.render_blocking(camera, 0.01));
  const Ticket control = read_later(small.model.control);
  small.device->wait_blocking(small.device->submit(), {WaitReason::Test, "test.gate"}).or_raise();
  EXPECT_GT(control.as<Control>().counts.instances, 8 * small.model.row_capacity)
      << "the scene must overflow the first buffers";
  EXPECT_EQ(control.as<Control>().gate.closed, 0u) << "training may go on";
}

TEST(ViewRenderer, LeavesTheStateOfTrainingAlone) {
  RunnerBench trained(tiny_options(40)), watched(tiny_options(40));
  ASSERT_TRUE(trained.run_blocking(40).ok());
  ASSERT_TRUE(watched.run_blocking(17).ok());
  const Camera& camera = tiny_dataset().views[0].camera;
  ViewRenderer renderer(watched.state.model, {frame_size(camera)}, false);
  ASSERT_TRUE(renderer.render_blocking(camera, 0.01, 0, kBackground).ok());
  ASSERT_TRUE(watched.run_blocking(40).ok());
  EXPECT_EQ(watched.hash_blocking(), trained.hash_blocking());
}

TEST(ViewRenderer, AnEmptyViewIsTheBackgroundWithoutAlpha) {
  Bench bench(large_cloud(tiny_dataset()));
  Camera camera = tiny_dataset().views[0].camera;
  for (int i = 0; i < 3; ++i) camera.world_to_camera[8 + i] *= -1;  // looks away
  for (int i = 0; i < 3; ++i) camera.world_to_camera[i] *= -1;
  camera.world_to_camera[11] = -1000;
  ViewRenderer renderer(bench.model, {frame_size(camera)}, true);
  const auto image = renderer.render_blocking(camera, 0.01, 0, kBackground).or_raise();
  for (size_t i = 0; i < image.color.pixels.size(); ++i) {
    ASSERT_EQ(image.color.pixels[i], kBackground[i % 3]);
  }
  for (const float alpha : image.alpha) ASSERT_EQ(alpha, 0.0f);
  for (const float depth : image.depth) ASSERT_EQ(depth, 0.0f);
}

TEST(ViewRenderer, TheInitialRenderOfAWorldTenTimesAsLargeIsTheSameImage) {
  Dataset large = tiny_dataset();
  for (float& x : large.points.positions) x *= 10;
  for (View& view : large.views) {
    for (int i = 0; i < 3; ++i) view.camera.world_to_camera[4 * i + 3] *= 10;
  }
  const SceneScale small_scale = scene_scale(tiny_dataset()), large_scale = scene_scale(large);
  EXPECT_NEAR(large_scale.normaliser, 10 * small_scale.normaliser, 1e-9 * large_scale.normaliser);
  EXPECT_NEAR(large_scale.scene_scale, small_scale.scene_scale, 1e-9);
  Bench a(large_cloud(tiny_dataset())), b(large_cloud(large));
  for (size_t i = 0; i < large.views.size(); i += 5) {
    const auto x =
        a.render_blocking(tiny_dataset().views[i].camera, kNearPlane * small_scale.normaliser);
    const auto y = b.render_blocking(large.views[i].camera, kNearPlane * large_scale.normaliser);
    double largest = 0;
    size_t n_drawn = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      largest = std::max(largest, std::abs(double{x[k]} - y[k]));
      n_drawn += x[k] != kBackground[k % 3];
    }
    EXPECT_LT(largest, 5e-3);
    EXPECT_GT(n_drawn, x.size() / 4);
  }
}

TEST(ViewRenderer, TheInitialRenderOfAWorldTurnedByARightAngleIsTheSameImage) {
  // x' = (-y, x, z); the cameras turn along.
  Dataset turned = tiny_dataset();
  for (size_t i = 0; i < turned.points.positions.size(); i += 3) {
    float* p = &turned.points.positions[i];
    std::swap(p[0], p[1]);
    p[0] = -p[0];
  }
  for (View& view : turned.views) {
    for (int row = 0; row < 3; ++row) {
      double* m = &view.camera.world_to_camera[4 * row];
      std::swap(m[0], m[1]);
      m[0] = -m[0];
    }
  }
  Bench a(large_cloud(tiny_dataset())), b(large_cloud(turned));
  for (size_t i = 0; i < turned.views.size(); i += 5) {
    const auto x = a.render_blocking(tiny_dataset().views[i].camera, 0.01);
    const auto y = b.render_blocking(turned.views[i].camera, 0.01);
    for (size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 5e-3) << k;
  }
}

}  // namespace
}  // namespace millrace::test
