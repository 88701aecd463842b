// Tests of one photograph: depth and wires stand where the lens puts them, and the output curve.
#include "synth/render_view.h"

#include <gtest/gtest.h>

#include <cmath>

namespace millrace::synth {
namespace {

TEST(RenderView, OutputCurveIsSrgb) {
  EXPECT_EQ(srgb_from_linear(-1), 0);
  EXPECT_NEAR(srgb_from_linear(0.002f), 0.02584f, 1e-5f);
  EXPECT_NEAR(srgb_from_linear(0.2140411f), 0.5f, 1e-4f);
  EXPECT_NEAR(srgb_from_linear(5), 1, 1e-6f);
}

// Through the straight and through the bent lens: a wire's visible points have wire pixels under
// them, and the depth there or beside it is the wire's or that of what lies behind.
TEST(RenderView, WireMasksShowEveryVisibleWireWhereTheLensPutsIt) {
  for (const bool distortion : {false, true}) {
    CaptureOptions options;
    options.width = 320;
    options.height = 240;
    options.distortion = distortion;
    const Lens lens = make_lens(options);
    const Scene scene = build_scene(options.seed);
    const Shot shot = make_shots(options)[5];
    const ViewPixels pixels = render_view(scene, options, lens, {}, shot, 5);
    size_t n_visible = 0, n_missing = 0;
    for (const CapsuleGroup& group : scene.groups) {
      if (group.material != Material::Wire) continue;
      for (uint32_t i = group.begin; i < group.end; ++i) {
        const Vec3 p = mix(scene.capsules[i].from, scene.capsules[i].to, 0.5f);
        const auto in_camera = shot.to_camera({p.x, p.y, p.z});
        const auto at = project(lens, in_camera);
        if (in_camera[2] < 0.1 || at[0] < 1 || at[1] < 1 || at[0] >= 319 || at[1] >= 239) continue;
        const Vec3 eye = shot.centre();
        const Hit hit = scene.trace({eye, normalize(p - eye)});
        if (hit.material != Material::Wire) continue;
        ++n_visible;
        const size_t pixel = static_cast<size_t>(at[1]) * 320 + static_cast<size_t>(at[0]);
        n_missing += pixels.wire[pixel] == 0 ? 1 : 0;
      }
    }
    EXPECT_GT(n_visible, 60u);
    EXPECT_LE(n_missing, n_visible / 50);
    size_t n_wire = 0;
    for (const uint8_t share : pixels.wire) n_wire += share > 0 ? 1 : 0;
    EXPECT_GT(n_wire, 400u);
    EXPECT_LT(n_wire, 320u * 240 / 10);
  }
}

TEST(RenderView, DepthIsAlongTheAxisAndZeroInTheSky) {
  CaptureOptions options;
  options.width = 96;
  options.height = 72;
  const Lens lens = make_lens(options);
  const Scene scene = build_scene(options.seed);
  const Shot shot = make_shots(options)[0];
  const ViewPixels pixels = render_view(scene, options, lens, {}, shot, 0);
  size_t n_sky = 0;
  for (uint32_t y = 0; y < 72; ++y) {
    for (uint32_t x = 0; x < 96; ++x) {
      const auto d = unproject(lens, x + 0.5, y + 0.5);
      const Hit hit = scene.trace({shot.centre(), normalize(shot.to_world(d[0], d[1], 1))});
      const uint16_t depth = pixels.depth[y * 96 + x];
      if (hit.material == Material::Sky) {
        EXPECT_EQ(depth, 0);
        ++n_sky;
      } else if (hit.distance < 50) {
        const double z = static_cast<double>(hit.distance) / std::hypot(d[0], d[1], 1.0);
        EXPECT_NEAR(depth / 1000.0, z, 0.002);
      }
    }
  }
  EXPECT_GT(n_sky, 200u);
}

TEST(RenderView, ExposureBrightensThePhotographAndNotTheNeutralImage) {
  CaptureOptions options;
  options.width = 48;
  options.height = 36;
  options.samples = 2;
  const Lens lens = make_lens(options);
  const Scene scene = build_scene(options.seed);
  Shot shot = make_shots(options)[0];
  const ViewPixels plain = render_view(scene, options, lens, {}, shot, 0);
  shot.ev = -1;
  const ViewPixels dark = render_view(scene, options, lens, {}, shot, 0);
  EXPECT_EQ(plain.neutral, dark.neutral);
  EXPECT_EQ(plain.photo, plain.neutral);
  EXPECT_TRUE(plain.keep.empty());
  uint64_t plain_sum = 0, dark_sum = 0;
  for (const uint8_t value : plain.photo) plain_sum += value;
  for (const uint8_t value : dark.photo) dark_sum += value;
  EXPECT_LT(dark_sum * 10, plain_sum * 8);
}

}  // namespace
}  // namespace millrace::synth
