// Backgrounds other than one colour: a picture behind every frame, and the modulation.
#include "train/background_image.h"

#include <gtest/gtest.h>

#include "io/image_write.h"
#include "train/open_device.h"
#include "train/scene.h"
#include "train/schedule.h"
#include "train/tiny_capture.h"
#include "train/view_renderer.h"

namespace millrace::test {
namespace {

std::filesystem::path write_picture(const char* name, uint32_t width, uint32_t height,
                                    const std::function<uint8_t(uint32_t, uint32_t, int)>& value) {
  Image8 image = {width, height, 3, {}};
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) image.pixels.push_back(value(x, y, c));
    }
  }
  const std::filesystem::path path = scratch_folder() / name;
  write_png8(path, image).or_raise();
  return path;
}

GaussianCloud one_gaussian_behind_the_camera() {
  GaussianCloud cloud;
  cloud.sh_degree = 0;
  cloud.means = {0, 0, -5};
  cloud.log_scales = {-3, -3, -3};
  cloud.rotations = {1, 0, 0, 0};
  cloud.opacities = {0};
  cloud.sh0 = {0, 0, 0};
  return cloud;
}

TEST(BackgroundImage, IsSeenWhereNoGaussianIs) {
  const auto device = open_training_device("cpu", 2).or_raise();
  const auto path = write_picture("gradient.png", 37, 21, [](uint32_t x, uint32_t y, int c) {
    return static_cast<uint8_t>((7 * x + 11 * y + 50 * static_cast<uint32_t>(c)) % 256);
  });
  const std::vector<FrameSize> sizes = {{37, 21}};
  const BackgroundImages images = BackgroundImages::load(*device, path.string(), sizes).or_raise();
  ASSERT_NE(images.of({37, 21}), nullptr);
  EXPECT_EQ(images.of({21, 37}), nullptr);
  const Model model = make_model(*device, one_gaussian_behind_the_camera(), 0, 1);
  ViewRenderer renderer(model, sizes, false);
  Camera camera;
  camera.width = 37;
  camera.height = 21;
  camera.fx = camera.fy = 30;
  camera.cx = 18.5;
  camera.cy = 10.5;
  const auto image =
      renderer.render_blocking(camera, 0.01, 0, {0, 0, 0}, images.of({37, 21})).or_raise();
  for (uint32_t y = 0; y < 21; ++y) {
    for (uint32_t x = 0; x < 37; ++x) {
      for (uint32_t c = 0; c < 3; ++c) {
        const float want = static_cast<float>((7 * x + 11 * y + 50 * c) % 256) / 255.0f;
        ASSERT_NEAR(image.color.pixels[3 * (y * 37 + x) + c], want, 1e-6)
            << x << ' ' << y << ' ' << c;
      }
    }
  }
}

TEST(BackgroundImage, OfOneColourTrainsAsThatColourDoes) {
  const auto white = write_picture("white.png", 5, 3, [](uint32_t, uint32_t, int) { return 255; });
  TrainOptions color = tiny_options(40), picture = tiny_options(40), black = tiny_options(40);
  color.bg_color = {1, 1, 1};
  picture.bg_mode = "image";
  picture.bg_image = white.string();
  const std::string with_color = train_or_fail(color).state_sha256;
  EXPECT_EQ(with_color, train_or_fail(picture).state_sha256);
  EXPECT_NE(with_color, train_or_fail(black).state_sha256);
}

TEST(BackgroundImage, ThatCannotBeReadIsAnErrorThatNamesIt) {
  TrainOptions options = tiny_options(10);
  options.bg_mode = "image";
  options.bg_image = (scratch_folder() / "absent.png").string();
  options.output = (scratch_folder() / "absent-background").string();
  const std::atomic<bool> stop = false;
  const auto result = train(options, {}, stop);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("absent.png"), std::string::npos);
}

TEST(BackgroundModulation, FadesToThePlainColour) {
  TrainOptions options;
  options.bg_mode = "modulation";
  options.iterations = 1000;
  options.bg_color = {0.25f, 0.5f, 0.75f};
  const auto early = background_at(options, 10, options.bg_color),
             later = background_at(options, 20, options.bg_color);
  EXPECT_NE(early, later);
  EXPECT_NE(early[0], early[1]);
  for (uint32_t step = 0; step < 1000; ++step) {
    for (const float channel : background_at(options, step, options.bg_color)) {
      ASSERT_GE(channel, 0.0f);
      ASSERT_LE(channel, 1.0f);
    }
  }
  // Half of the way down at 3/8, a quarter of the strength left at 5/8.
  float highest = 0;
  for (uint32_t step = 600; step < 650; ++step) {
    for (const float channel : background_at(options, step, options.bg_color))
      highest = std::max(highest, channel);
  }
  EXPECT_LE(highest, 0.31f);
  EXPECT_EQ(background_at(options, 800, options.bg_color), options.bg_color);
}

}  // namespace
}  // namespace millrace::test
