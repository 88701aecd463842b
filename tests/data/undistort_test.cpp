// The geometry of undistortion, and the pixels that come out of it.
#include "data/undistort.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "capture_writer.h"
#include "data/image.h"

namespace millrace::test {
namespace {

Lens lens_of(uint32_t width, uint32_t height, double focal, double k1, double k2 = 0, double p1 = 0,
             double p2 = 0) {
  return {LensKind::OpenCv, width, height, focal, focal, 0.5 * width, 0.5 * height, k1, k2, p1, p2};
}

TEST(Undistort, TheInverseUndoesTheLens) {
  const Lens lens = lens_of(100, 80, 60, -0.1, 0.05, 0.002, -0.003);
  for (double y = -0.6; y <= 0.6; y += 0.1) {
    for (double x = -0.8; x <= 0.8; x += 0.1) {
      const auto at = distort(lens, x, y);
      const auto back = undistort(lens, at[0], at[1]);
      ASSERT_TRUE(back);
      EXPECT_NEAR((*back)[0], x, 1e-10);
      EXPECT_NEAR((*back)[1], y, 1e-10);
    }
  }
}

TEST(Undistort, EveryPixelHasItsSourceInsideTheImage) {
  for (const UndistortTo to : {UndistortTo::FillFrame, UndistortTo::KeepFocal}) {
    for (const Lens& lens : {lens_of(720, 1280, 1105, 0.058), lens_of(1000, 1000, 1297, -0.066),
                             lens_of(960, 540, 755, 0.024, -0.07, 0.0028, -0.0041)}) {
      const Undistorted pinhole = undistorted_camera(lens, to, "test").or_raise();
      for (uint32_t y = 0; y < pinhole.height; ++y) {
        for (uint32_t x = 0; x < pinhole.width; x += (y == 0 || y + 1 == pinhole.height) ? 1 : 50) {
          const auto at = distort(lens, (x + 0.5 - pinhole.cx) / pinhole.fx,
                                  (y + 0.5 - pinhole.cy) / pinhole.fy);
          const double u = lens.fx * at[0] + lens.cx, v = lens.fy * at[1] + lens.cy;
          ASSERT_GE(u, 0.5 - 1e-3);
          ASSERT_GE(v, 0.5 - 1e-3);
          ASSERT_LE(u, lens.width - 0.5 + 1e-3);
          ASSERT_LE(v, lens.height - 0.5 + 1e-3);
        }
      }
    }
  }
}

TEST(Undistort, FillFrameLosesOneRowAndColumnAndKeepFocalKeepsTheFocal) {
  const Lens lens = lens_of(720, 1280, 1105.13, 0.0578);
  const Undistorted filled = undistorted_camera(lens, UndistortTo::FillFrame, "test").or_raise();
  EXPECT_EQ(filled.width, 719u);
  EXPECT_EQ(filled.height, 1279u);
  EXPECT_NEAR(filled.fx, 1132, 0.5);
  const Undistorted kept = undistorted_camera(lens, UndistortTo::KeepFocal, "test").or_raise();
  EXPECT_EQ(kept.fx, lens.fx);
  EXPECT_EQ(kept.cx + kept.crop_x, lens.cx);
  EXPECT_LT(kept.width, 705u);
}

TEST(Undistort, ZeroDistortionMovesNoPixel) {
  TempFolder folder;
  const Image8 image = gradient_image(37, 23);
  write_png(folder / "a.png", image);
  View view;
  view.image_path = folder / "a.png";
  view.file_width = 37, view.file_height = 23;
  view.lens = lens_of(37, 23, 30, 0);
  view.camera = {37, 23, 30, 30, 18.5, 11.5, {}};
  // Through the resampler as well, whose kind says that there is a lens.
  for (const LensKind kind : {LensKind::Pinhole, LensKind::OpenCv}) {
    view.lens.kind = kind;
    EXPECT_EQ(load_view_image(view, {0, 0, 0}).or_raise().pixels, image.pixels);
  }
  view.lens.kind = LensKind::Pinhole;
  const Undistorted same = undistorted_camera(view.lens, UndistortTo::FillFrame, "test").or_raise();
  EXPECT_EQ(same.width, 37u);
  EXPECT_EQ(same.fx, 30);
}

TEST(Undistort, ADistortedPhotographBecomesThePinholeOne) {
  // The picture is a function of the ray: distorting and undistorting must give the function back.
  const auto shade = [](double x, double y) {
    return 128 + 60 * std::sin(9 * x) + 50 * std::cos(7 * y);
  };
  const Lens lens = lens_of(160, 120, 120, 0.12, -0.03, 0.004, -0.006);
  Image8 photo{160, 120, 3, {}};
  for (uint32_t row = 0; row < 120; ++row) {
    for (uint32_t column = 0; column < 160; ++column) {
      const auto ray =
          undistort(lens, (column + 0.5 - lens.cx) / lens.fx, (row + 0.5 - lens.cy) / lens.fy);
      ASSERT_TRUE(ray);
      for (int k = 0; k < 3; ++k) {
        photo.pixels.push_back(static_cast<uint8_t>(std::lround(shade((*ray)[0], (*ray)[1]))));
      }
    }
  }
  TempFolder folder;
  write_png(folder / "a.png", photo);
  for (const UndistortTo to : {UndistortTo::FillFrame, UndistortTo::KeepFocal}) {
    const Undistorted p = undistorted_camera(lens, to, "test").or_raise();
    View view;
    view.image_path = folder / "a.png";
    view.file_width = 160, view.file_height = 120;
    view.lens = lens;
    view.camera = {p.width, p.height, p.fx, p.fy, p.cx, p.cy, {}};
    const Image8 image = load_view_image(view, {0, 0, 0}).or_raise();
    ASSERT_EQ(image.width, p.width);
    for (uint32_t row = 0; row < p.height; ++row) {
      for (uint32_t column = 0; column < p.width; ++column) {
        const double expected = shade((column + 0.5 - p.cx) / p.fx, (row + 0.5 - p.cy) / p.fy);
        ASSERT_NEAR(image.pixels[3 * (row * p.width + column)], expected, 1.6)
            << column << "," << row;
      }
    }
  }
}

TEST(Undistort, ALensThatFoldsOverIsRefused) {
  const auto result =
      undistorted_camera(lens_of(1000, 1000, 500, -2), UndistortTo::FillFrame, "camera 3");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("camera 3"), std::string::npos);
}

}  // namespace
}  // namespace millrace::test
