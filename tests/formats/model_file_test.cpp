// Tests of formats/model_file.cpp: the table of formats.
#include "formats/model_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "formats/random_model.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

constexpr std::array kAllFormats = {ModelFormat::Ply,   ModelFormat::CompressedPly,
                                    ModelFormat::Splat, ModelFormat::Spz,
                                    ModelFormat::Sog,   ModelFormat::Html};

TEST(ModelFile, NamesAndEndingsAreThoseOfTheirFormat) {
  for (const ModelFormat format : kAllFormats) {
    EXPECT_EQ(formats_of_names({format_name(format)}).or_raise(), std::vector{format});
    EXPECT_EQ(format_of_path(std::string("a/B") + format_extension(format)).or_raise(), format);
  }
  EXPECT_EQ(format_of_path("X.COMPRESSED.PLY").or_raise(), ModelFormat::CompressedPly);
  const auto unknown = formats_of_names({"ply", "obj"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::Usage);
  EXPECT_NE(unknown.error().message.find("compressed-ply"), std::string::npos);
  EXPECT_FALSE(format_of_path("model.obj").ok());
}

TEST(ModelFile, EveryFormatIsReadBackAsItself) {
  const TemporaryFolder folder;
  const GaussianCloud cloud = random_model(100, 2);
  for (const ModelFormat format : kAllFormats) {
    const auto path = folder / (std::string("m") + format_extension(format));
    ASSERT_TRUE(write_model(path, cloud, format).ok()) << format_name(format);
    const auto read = read_model(path);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read.value().count(), 100u) << format_name(format);
    EXPECT_EQ(read.value().sh_degree, format == ModelFormat::Splat ? 0 : 2);
  }
}

TEST(ModelFile, RowsThatAreNotFiniteAreRefusedByIndexAndNoFileIsLeft) {
  const TemporaryFolder folder;
  GaussianCloud cloud = random_model(20, 0);
  cloud.rotations[0] = cloud.rotations[1] = cloud.rotations[2] = cloud.rotations[3] = 0;
  cloud.means[3 * 7 + 1] = std::numeric_limits<float>::quiet_NaN();
  for (const ModelFormat format : kAllFormats) {
    const auto path = folder / (std::string("m") + format_extension(format));
    const auto written = write_model(path, cloud, format);
    ASSERT_FALSE(written.ok()) << format_name(format);
    EXPECT_NE(written.error().message.find("row 7 (means[1]"), std::string::npos)
        << written.error().message;
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST(ModelFile, RowsThatAreNeverDrawnStayInPlyAlone) {
  const TemporaryFolder folder;
  GaussianCloud cloud = random_model(20, 0);
  for (size_t k = 0; k < 4; ++k) cloud.rotations[4 * 3 + k] = 0;
  for (const ModelFormat format : kAllFormats) {
    const auto path = folder / (std::string("m") + format_extension(format));
    ASSERT_TRUE(write_model(path, cloud, format).ok());
    EXPECT_EQ(read_model(path).or_raise().count(), format == ModelFormat::Ply ? 20u : 19u);
  }
}

}  // namespace
}  // namespace millrace
