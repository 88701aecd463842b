// Tests of train/model_export.cpp: files that are near the model, and files that are not.
#include "train/model_export.h"

#include <gtest/gtest.h>

#include "formats/default_views.h"
#include "formats/random_model.h"
#include "io/temporary_folder.h"
#include "train/open_device.h"

namespace millrace {
namespace {

class ModelExport : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::unique_ptr<Device> device_ = open_training_device("cpu", 2).or_raise();
  GaussianCloud cloud_ = tame_model(400, 2);
};

TEST_F(ModelExport, EveryFormatIsWithinItsTolerance) {
  ProvenExports exports(*device_, cloud_, ring_cameras(cloud_, 3, 96, 64));
  for (const char* name : {"ply", "compressed-ply", "splat", "spz", "sog", "html"}) {
    const ModelFormat format = formats_of_names({name}).or_raise().front();
    const auto file =
        exports.write_blocking(folder_ / (std::string("m") + format_extension(format)), format, {});
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_GE(file.value().mean_psnr, std::min(100.0, export_tolerance(format, {}).mean_psnr));
    EXPECT_LE(file.value().least_psnr, file.value().mean_psnr);
    EXPECT_EQ(file.value().gaussians, 400u);
  }
}

TEST_F(ModelExport, AFileThatIsNotNearEnoughIsKeptAsBadAndTold) {
  // Coefficients far beyond what a byte holds, in one bit each.
  for (float& value : cloud_.sh_rest) value *= 24;
  for (float& value : cloud_.log_scales) value += 1;
  ProvenExports exports(*device_, cloud_, ring_cameras(cloud_, 3, 96, 64));
  WriteOptions options;
  options.spz.sh_bits = 1;
  const auto file = exports.write_blocking(folder_ / "m.spz", ModelFormat::Spz, options);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::Output);
  EXPECT_NE(file.error().message.find("m.spz.bad"), std::string::npos) << file.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m.spz"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "m.spz.bad"));
}

TEST_F(ModelExport, StemsAreNamesWithoutTheirFormat) {
  EXPECT_EQ(model_stem("a/garden.compressed.ply"), "garden");
  EXPECT_EQ(model_stem("garden.v2.sog"), "garden.v2");
  EXPECT_EQ(model_stem("garden.data"), "garden");
}

}  // namespace
}  // namespace millrace
