// Mask modes: what kernels and scores are told.
#include "train/mask_settings.h"

#include <gtest/gtest.h>

#include "data/image.h"
#include "train/runner_bench.h"
#include "train/target_cache.h"

namespace millrace::test {
namespace {

TrainOptions with_mode(const std::string& mode, bool inverted = false) {
  TrainOptions options;
  options.mask_mode = mode;
  options.invert_masks = inverted;
  return options;
}

std::vector<float> weights(const std::string& mode, bool inverted = false) {
  return mask_weights({0, 64, 127, 128, 250, 251, 255}, mask_settings(with_mode(mode, inverted)));
}

TEST(MaskSettings, NameTheModes) {
  const MaskMode modes[] = {kMaskNone, kMaskIgnore, kMaskSegment, kMaskSegmentAndIgnore,
                            kMaskAlphaConsistent};
  for (size_t i = 0; i < kMaskModes.size(); ++i) {
    EXPECT_EQ(mask_settings(with_mode(kMaskModes[i])).mask_mode, modes[i]);
    EXPECT_EQ(uses_masks(with_mode(kMaskModes[i])), i > 0);
  }
  TrainOptions options = with_mode("ignore", true);
  options.mask_threshold = 0.25;
  options.mask_penalty = 3;
  const LossStep loss = mask_settings(options);
  EXPECT_EQ(loss.mask_inverted, 1u);
  EXPECT_EQ(loss.mask_threshold, 0.25f);
  EXPECT_EQ(loss.mask_penalty, 3.0f);
}

TEST(MaskSettings, WeighPixelsInScoresAsInTheLoss) {
  // From the threshold on a pixel counts whole, below by its value.
  EXPECT_EQ(weights("ignore"), (std::vector<float>{0, 64 / 255.0f, 127 / 255.0f, 1, 1, 1, 1}));
  EXPECT_EQ(weights("segment"), weights("ignore"));
  EXPECT_EQ(weights("ignore", true),
            (std::vector<float>{1, 1, 1, 127 / 255.0f, 5 / 255.0f, 4 / 255.0f, 0}));
  EXPECT_EQ(weights("segment-and-ignore"), (std::vector<float>{0, 0, 0, 0, 0, 1, 1}));
  EXPECT_TRUE(weights("none").empty());
  EXPECT_TRUE(weights("alpha-consistent").empty());
}

TEST(MaskSettings, TellHowMuchIsKeptAndWhatLooksInverted) {
  EXPECT_EQ(mask_note(with_mode("ignore"), 0.871, 9),
            "the masks of 9 photographs keep 87.1 % of their pixels");
  EXPECT_NE(mask_note(with_mode("ignore"), 0.04, 9).find("use --invert-masks"), std::string::npos);
  EXPECT_NE(mask_note(with_mode("ignore", true), 0.96, 9).find("leave out --invert-masks"),
            std::string::npos);
}

TEST(Targets, HoldTheMaskBesideThePhotograph) {
  const auto device = make_checked(open_device("cpu:2").or_raise());
  std::vector<View> views = tiny_dataset().views;
  views.resize(2);
  views[1].mask_path = "some.png";
  TargetCache targets(views, 1u << 20);
  const size_t n = size_t{views[0].camera.width} * views[0].camera.height;
  EXPECT_EQ(targets.total_bytes(), 7 * n);
  std::vector<uint8_t> pixels(3 * n, 9), mask(n);
  for (size_t i = 0; i < n; ++i) mask[i] = static_cast<uint8_t>(i % 251);
  EXPECT_FALSE(targets.put(*device, 0, pixels).mask.defined());
  const Tensor held = targets.put(*device, 1, pixels, mask).mask;
  ASSERT_TRUE(held.defined());
  const Ticket ticket = read_later(held), photo = read_later(targets.find(1).pixels);
  device->wait_blocking(device->submit(), {WaitReason::Test, "test.mask"}).or_raise();
  ASSERT_EQ(ticket.bytes().size(), n);
  for (size_t i = 0; i < n; ++i) {
    ASSERT_EQ(std::to_integer<uint8_t>(ticket.bytes()[i]), mask[i]);
    ASSERT_EQ(std::to_integer<uint8_t>(photo.bytes()[3 * i]), 9);
  }
}

}  // namespace
}  // namespace millrace::test
