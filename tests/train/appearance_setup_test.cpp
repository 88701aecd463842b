// What exposure correction begins with.
#include "train/appearance_setup.h"

#include <gtest/gtest.h>

#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

std::vector<View> views_with_focal_lengths(const std::vector<double>& focal) {
  std::vector<View> views(focal.size());
  for (size_t i = 0; i < focal.size(); ++i) {
    views[i].lens.width = 640;
    views[i].lens.height = 480;
    views[i].lens.fx = views[i].lens.fy = focal[i];
  }
  return views;
}

TEST(PhysicalCameras, AreTheDifferentLenses) {
  EXPECT_EQ(physical_cameras(views_with_focal_lengths({500, 500, 700, 500, 700})),
            (std::vector<uint32_t>{0, 0, 1, 0, 1}));
}

TEST(PhysicalCameras, WithALensForEachViewAreOne) {
  EXPECT_EQ(physical_cameras(views_with_focal_lengths({500, 501, 502})),
            (std::vector<uint32_t>{0, 0, 0}));
}

TEST(AppearanceSetup, IsNothingWithoutExposureCorrection) {
  EXPECT_FALSE(appearance_setup(tiny_options(1), tiny_dataset().views).is_on());
}

TEST(AppearanceSetup, BeginsAtZeroWhereFilesTellNoExposure) {
  TrainOptions options = tiny_options(1);
  options.exposure_correction = "ppisp";
  const std::vector<View>& views = tiny_dataset().views;
  AppearanceSetup setup = appearance_setup(options, views);
  EXPECT_TRUE(setup.is_on());
  EXPECT_EQ(setup.n_cameras, 1u);
  EXPECT_EQ(seed_exposures(views, &setup), "");
  EXPECT_EQ(setup.exposures, std::vector<float>(views.size(), 0.0f));
}

}  // namespace
}  // namespace millrace::test
