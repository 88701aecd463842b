// Tests of whole captures on disk: files, determinism, refusal, exposure, masks, and the COLMAP
// model.
#include "synth/make_capture.h"

#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "data/image.h"
#include "synth/capture_files.h"

namespace millrace {
namespace {

using synth_test::all_files;
using synth_test::read_gray_png;
using synth_test::ScratchFolder;

CaptureOptions small() {
  CaptureOptions options;
  options.n_views = 9;
  options.width = 64;
  options.height = 48;
  options.n_points = 150;
  options.samples = 3;
  return options;
}

Dataset load(const std::filesystem::path& folder) {
  auto dataset = load_dataset(folder, {});
  EXPECT_TRUE(dataset.ok()) << (dataset.ok() ? "" : dataset.error().message);
  return dataset.ok() ? std::move(dataset).value() : Dataset{};
}

float linear_from_srgb(double byte) {
  const double x = byte / 255;
  return static_cast<float>(x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

TEST(MakeCapture, WritesEveryFileOfACapture) {
  const ScratchFolder folder("files");
  CaptureOptions options = small();
  options.masks = true;
  uint32_t calls = 0;
  const auto report = make_capture(folder.path(), options, [&](uint32_t done, uint32_t total) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(total, 9u);
  });
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(calls, 9u);
  EXPECT_EQ(report.value().n_views, 9u);
  EXPECT_EQ(report.value().n_points, 150u);
  const auto files = all_files(folder.path());
  for (const char* name :
       {"images/IMG_0001.jpg", "images/IMG_0009.jpg", "masks/IMG_0009.png", "sparse/0/cameras.bin",
        "sparse/0/images.bin", "sparse/0/points3D.bin", "ground_truth/exposure.json",
        "ground_truth/README", "ground_truth/wire_masks/IMG_0005.png",
        "ground_truth/depth/IMG_0005.png", "ground_truth/neutral/IMG_0005.png"}) {
    EXPECT_EQ(files.count(name), 1u) << name;
  }
  EXPECT_EQ(files.size(), 9u * 5 + 5);
}

TEST(MakeCapture, GivesTheSameBytesAgainAndWithOneThread) {
  const ScratchFolder first("bytes_a"), second("bytes_b");
  CaptureOptions options = small();
  options.masks = options.exposure = options.vignetting = options.distortion = true;
  ASSERT_TRUE(make_capture(first.path(), options, nullptr).ok());
  {
    const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
    ASSERT_TRUE(make_capture(second.path(), options, nullptr).ok());
  }
  const auto a = all_files(first.path()), b = all_files(second.path());
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, bytes] : a) EXPECT_TRUE(b.count(name) && b.at(name) == bytes) << name;
}

TEST(MakeCapture, AnotherSeedGivesAnotherCapture) {
  const ScratchFolder first("seed_a"), second("seed_b");
  CaptureOptions options = small();
  ASSERT_TRUE(make_capture(first.path(), options, nullptr).ok());
  options.seed = 2;
  ASSERT_TRUE(make_capture(second.path(), options, nullptr).ok());
  EXPECT_NE(all_files(first.path())["images/IMG_0001.jpg"],
            all_files(second.path())["images/IMG_0001.jpg"]);
}

TEST(MakeCapture, RefusesAFolderThatHoldsACaptureUnlessToldToOverwrite) {
  const ScratchFolder folder("overwrite");
  CaptureOptions options = small();
  ASSERT_TRUE(make_capture(folder.path(), options, nullptr).ok());
  const auto refused = make_capture(folder.path(), options, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Usage);
  EXPECT_NE(refused.error().message.find("--overwrite"), std::string::npos);

  // Nothing of the first capture may survive, or its binary model would be read instead of the text
  // one.
  options.overwrite = options.text_model = true;
  options.n_views = 5;
  ASSERT_TRUE(make_capture(folder.path(), options, nullptr).ok());
  const auto files = all_files(folder.path());
  EXPECT_EQ(files.count("sparse/0/images.bin"), 0u);
  EXPECT_EQ(files.count("images/IMG_0009.jpg"), 0u);
  EXPECT_EQ(files.count("images/IMG_0005.jpg"), 1u);
}

TEST(MakeCapture, NeverRemovesImagesThatItDidNotWrite) {
  const ScratchFolder folder("foreign");
  const auto photo = folder.path() / "images" / "holiday.jpg";
  ASSERT_TRUE(write_file_atomically(photo, std::string_view("precious")).ok());
  CaptureOptions options = small();
  options.overwrite = true;
  const auto refused = make_capture(folder.path(), options, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Usage);
  EXPECT_TRUE(std::filesystem::exists(photo));
}

TEST(MakeCapture, RefusesAbsurdOptions) {
  const ScratchFolder folder("absurd");
  const auto code = [&](auto change) {
    CaptureOptions options = small();
    change(options);
    const auto report = make_capture(folder.path(), options, nullptr);
    return report.ok() ? 0 : static_cast<int>(report.error().code);
  };
  EXPECT_EQ(code([](CaptureOptions& o) { o.n_views = 3; }), 2);
  EXPECT_EQ(code([](CaptureOptions& o) { o.n_views = 1001; }), 2);
  EXPECT_EQ(code([](CaptureOptions& o) { o.width = 15; }), 2);
  EXPECT_EQ(code([](CaptureOptions& o) { o.height = 8193; }), 2);
  EXPECT_EQ(code([](CaptureOptions& o) { o.samples = 0; }), 2);
  EXPECT_FALSE(std::filesystem::exists(folder.path()));
}

TEST(MakeCapture, ReportsAnOutputErrorWhenTheFolderIsAFile) {
  const ScratchFolder folder("blocked");
  const auto path = folder.path() / "file";
  ASSERT_TRUE(write_file_atomically(path, std::string_view("x")).ok());
  const auto report = make_capture(path, small(), nullptr);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::Output);
}

TEST(MakeCapture, MeanColorPredictsHeldOutViewsBadly) {
  const ScratchFolder folder("mean");
  CaptureOptions options = small();
  options.n_views = 24;
  const auto report = make_capture(folder.path(), options, nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_LE(report.value().mean_color_psnr, 15.0);
  EXPECT_GT(report.value().mean_color_psnr, 8.0);

  // The same figure from the files; JPEG moves it a little.
  const Dataset dataset = load(folder.path());
  double sum[3] = {}, n = 0, psnr = 0, n_held_out = 0;
  for (const bool held_out : {false, true}) {
    for (const View& view : dataset.views) {
      if ((view.index % 8 == 0) != held_out) continue;
      const Image8 image = read_image(view.image_path).or_raise();
      double squares = 0;
      for (size_t i = 0; i < image.pixels.size(); ++i) {
        if (!held_out) sum[i % 3] += image.pixels[i];
        const double difference = image.pixels[i] - sum[i % 3] / std::max(n, 1.0);
        squares += difference * difference;
      }
      if (!held_out) n += static_cast<double>(image.pixels.size() / 3);
      if (!held_out) continue;
      psnr += 10 * std::log10(255.0 * 255.0 * static_cast<double>(image.pixels.size()) / squares);
      n_held_out += 1;
    }
  }
  EXPECT_NEAR(report.value().mean_color_psnr, psnr / n_held_out, 0.05);
}

TEST(MakeCapture, PhotographsAreNeutralTimesTheGainsOfExposureJson) {
  const ScratchFolder folder("exposure");
  CaptureOptions options = small();
  options.exposure = options.vignetting = true;
  ASSERT_TRUE(make_capture(folder.path(), options, nullptr).ok());
  const auto text = read_text_file(folder.path() / "ground_truth" / "exposure.json");
  ASSERT_TRUE(text.ok());
  const auto json = nlohmann::json::parse(text.value(), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  const double a = json["vignetting"]["a"], b = json["vignetting"]["b"];
  EXPECT_LT(a, -0.1);
  ASSERT_EQ(json["images"].size(), 9u);
  double lowest = 9, highest = -9;
  for (const auto& entry : json["images"]) {
    const std::string name = entry["name"];
    const double ev = entry["ev"];
    lowest = std::min(lowest, ev);
    highest = std::max(highest, ev);
    const auto stem = std::filesystem::path(name).replace_extension(".png");
    const Image8 photo = read_image(folder.path() / "images" / name).or_raise();
    const Image8 neutral = read_image(folder.path() / "ground_truth" / "neutral" / stem).or_raise();
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(double(entry["gain"][k]), std::exp2(ev) * double(entry["white_balance"][k]),
                  1e-9);
      std::vector<double> ratios;
      for (uint32_t y = 0; y < photo.height; ++y) {
        for (uint32_t x = 0; x < photo.width; ++x) {
          const size_t at = 3 * (static_cast<size_t>(y) * photo.width + x) + k;
          if (photo.pixels[at] > 250 || neutral.pixels[at] > 250 || neutral.pixels[at] < 60)
            continue;
          const double dx = (x + 0.5 - 32) / 40, dy = (y + 0.5 - 24) / 40, r2 = dx * dx + dy * dy;
          ratios.push_back(static_cast<double>(linear_from_srgb(photo.pixels[at])) /
                           static_cast<double>(linear_from_srgb(neutral.pixels[at])) /
                           (1 + r2 * (a + r2 * b)));
        }
      }
      ASSERT_GT(ratios.size(), 100u) << name;
      EXPECT_NEAR(median(ratios) / double(entry["gain"][k]), 1.0, 0.03) << name << " channel " << k;
    }
  }
  EXPECT_LT(lowest, -0.2);
  EXPECT_GT(highest, 0.2);
}

TEST(MakeCapture, WithoutExposureThePhotographIsTheNeutralImage) {
  const ScratchFolder folder("neutral");
  ASSERT_TRUE(make_capture(folder.path(), small(), nullptr).ok());
  const Image8 photo = read_image(folder.path() / "images" / "IMG_0004.jpg").or_raise();
  const Image8 neutral = read_image(folder.path() / "ground_truth/neutral/IMG_0004.png").or_raise();
  double sum = 0;
  for (size_t i = 0; i < photo.pixels.size(); ++i) {
    sum += std::abs(photo.pixels[i] - neutral.pixels[i]);
  }
  EXPECT_LT(sum / static_cast<double>(photo.pixels.size()), 3.0);
}

TEST(MakeCapture, MasksAreBlackExactlyWhereTheDistractorChangedThePhotograph) {
  const ScratchFolder folder("masks");
  CaptureOptions options = small();
  options.masks = true;
  ASSERT_TRUE(make_capture(folder.path(), options, nullptr).ok());
  for (int i = 1; i <= 9; ++i) {
    const std::string stem = "IMG_000" + std::to_string(i);
    const auto mask = read_gray_png(folder.path() / "masks" / (stem + ".png"));
    ASSERT_EQ(mask.pixels.size(), 64u * 48) << stem;
    const Image8 photo = read_image(folder.path() / "images" / (stem + ".jpg")).or_raise();
    const Image8 neutral =
        read_image(folder.path() / "ground_truth" / "neutral" / (stem + ".png")).or_raise();
    double kept = 0, hidden = 0, n_hidden = 0;
    for (size_t at = 0; at < mask.pixels.size(); ++at) {
      ASSERT_TRUE(mask.pixels[at] == 0 || mask.pixels[at] == 255);
      double difference = 0;
      for (size_t k = 0; k < 3; ++k) {
        difference += std::abs(photo.pixels[3 * at + k] - neutral.pixels[3 * at + k]) / 3.0;
      }
      (mask.pixels[at] == 0 ? hidden : kept) += difference;
      n_hidden += mask.pixels[at] == 0 ? 1 : 0;
    }
    const double n = static_cast<double>(mask.pixels.size());
    EXPECT_GT(n_hidden / n, 0.02) << stem;
    EXPECT_LT(n_hidden / n, 0.4) << stem;
    EXPECT_LT(kept / (n - n_hidden), 5.0) << stem;
    EXPECT_GT(hidden / n_hidden, 20.0) << stem;
  }
}

TEST(MakeCapture, TextAndBinaryModelsAreTheSameDataset) {
  const ScratchFolder binary("binary"), text("text");
  CaptureOptions options = small();
  options.distortion = true;
  ASSERT_TRUE(make_capture(binary.path(), options, nullptr).ok());
  options.text_model = true;
  ASSERT_TRUE(make_capture(text.path(), options, nullptr).ok());
  const Dataset a = load(binary.path()), b = load(text.path());
  ASSERT_EQ(a.views.size(), 9u);
  ASSERT_EQ(b.views.size(), 9u);
  EXPECT_TRUE(a.warnings.empty()) << a.warnings[0];
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(a.views[i].name, b.views[i].name);
    EXPECT_EQ(a.views[i].camera.world_to_camera, b.views[i].camera.world_to_camera);
    EXPECT_EQ(a.views[i].lens.k1, b.views[i].lens.k1);
    EXPECT_NE(a.views[i].lens.k1, 0);
  }
  EXPECT_EQ(a.points.positions, b.points.positions);
  EXPECT_EQ(a.points.colors, b.points.colors);
}

TEST(MakeCapture, PointsHaveTheColorOfThePhotographsThatShowThem) {
  const ScratchFolder folder("colors");
  CaptureOptions options = small();
  options.width = 160;
  options.height = 120;
  options.n_views = 6;
  options.n_points = 300;
  ASSERT_TRUE(make_capture(folder.path(), options, nullptr).ok());
  const Dataset dataset = load(folder.path());
  ASSERT_EQ(dataset.points.count(), 300u);
  EXPECT_FALSE(dataset.points_are_random);
  std::vector<Image8> photos;
  std::vector<synth_test::GrayImage> depths;
  for (const View& view : dataset.views) {
    photos.push_back(read_image(view.image_path).or_raise());
    const auto png = std::filesystem::path(view.name).replace_extension(".png");
    depths.push_back(read_gray_png(folder.path() / "ground_truth" / "depth" / png));
    EXPECT_EQ(depths.back().bits, 16u);
  }
  // For each point: the mean over photographs whose depth map says that they see it.
  std::vector<double> differences;
  for (size_t i = 0; i < dataset.points.count(); ++i) {
    const float* p = &dataset.points.positions[3 * i];
    double sum[3] = {}, n = 0;
    for (size_t v = 0; v < dataset.views.size(); ++v) {
      const Camera& camera = dataset.views[v].camera;
      const auto& m = camera.world_to_camera;
      double q[3];
      for (size_t k = 0; k < 3; ++k) {
        q[k] = m[4 * k] * double(p[0]) + m[4 * k + 1] * double(p[1]) + m[4 * k + 2] * double(p[2]) +
               m[4 * k + 3];
      }
      const double x = camera.fx * q[0] / q[2] + camera.cx, y = camera.fy * q[1] / q[2] + camera.cy;
      if (q[2] < 0.1 || x < 0 || y < 0 || x >= 160 || y >= 120) continue;
      const size_t at = static_cast<size_t>(y) * 160 + static_cast<size_t>(x);
      if (std::abs(depths[v].pixels[at] / 1000.0 - q[2]) > 0.05 * q[2]) continue;
      for (size_t k = 0; k < 3; ++k) sum[k] += photos[v].pixels[3 * at + k];
      n += 1;
    }
    ASSERT_GE(n, 2) << "point " << i << " is seen by no photograph";
    for (size_t k = 0; k < 3; ++k) {
      differences.push_back(std::abs(sum[k] / n - dataset.points.colors[3 * i + k]));
    }
  }
  EXPECT_LT(median(differences), 10.0);
}

}  // namespace
}  // namespace millrace
