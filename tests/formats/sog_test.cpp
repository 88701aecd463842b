// Tests of formats/sog.cpp.
#include "formats/sog.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/broken_files.h"
#include "formats/quantize.h"
#include "formats/random_model.h"
#include "formats/space_order.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

nlohmann::json meta_of(const std::vector<ZipEntry>& entries) {
  const auto* text = reinterpret_cast<const char*>(entries.at(0).bytes.data());
  return nlohmann::json::parse(text, text + entries[0].bytes.size());
}

TEST(Sog, MetaNamesEveryImageWithTheKeysOfVersionTwo) {
  const auto entries = encode_sog(random_model(300, 2)).or_raise();
  ASSERT_EQ(entries.at(0).name, "meta.json");
  const auto meta = meta_of(entries);
  EXPECT_EQ(meta["version"], 2);
  EXPECT_EQ(meta["count"], 300);
  EXPECT_EQ(meta["means"]["files"], (std::vector<std::string>{"means_l.webp", "means_u.webp"}));
  EXPECT_EQ(meta["means"]["mins"].size(), 3u);
  EXPECT_EQ(meta["scales"]["codebook"].size(), 256u);
  EXPECT_EQ(meta["sh0"]["files"], (std::vector<std::string>{"sh0.webp"}));
  EXPECT_EQ(meta["quats"]["files"], (std::vector<std::string>{"quats.webp"}));
  EXPECT_EQ(meta["shN"]["bands"], 2);
  EXPECT_TRUE(meta["shN"].contains("count"));
  EXPECT_EQ(meta["shN"]["files"],
            (std::vector<std::string>{"shN_centroids.webp", "shN_labels.webp"}));
  EXPECT_EQ(entries.size(), 8u);
}

TEST(Sog, RoundTripKeepsEveryDegree) {
  for (int degree = 0; degree <= 3; ++degree) {
    const GaussianCloud cloud = random_model(900, degree);
    const GaussianCloud read = decode_sog(encode_sog(cloud).or_raise(), "test").or_raise();
    const Apart most = apart(take_rows(cloud, morton_order(cloud)), read, true);
    EXPECT_LT(most.means, 0.01f);       // of the farthest; the step grows with the distance
    EXPECT_LT(most.log_scales, 0.25f);  // of the few in the tails
    EXPECT_LT(most.rotation_deg, 1.0f);
    EXPECT_LT(most.alpha, 0.51f / 255);
    EXPECT_LT(most.sh0, 0.15f);
    EXPECT_LT(most.sh_rest, 0.08f);
  }
}

TEST(Sog, ColoursUnderTransparentPixelsAreKept) {
  GaussianCloud cloud = random_model(100, 0);
  std::fill(cloud.opacities.begin(), cloud.opacities.end(), -50.0f);
  const GaussianCloud read = decode_sog(encode_sog(cloud).or_raise(), "test").or_raise();
  EXPECT_LT(apart(take_rows(cloud, morton_order(cloud)), read, true).sh0, 0.2f);
}

TEST(Sog, AFolderAndItsMetaAreReadLikeTheArchive) {
  const TemporaryFolder folder;
  const GaussianCloud cloud = random_model(50, 1);
  for (const ZipEntry& entry : encode_sog(cloud).or_raise()) {
    ASSERT_TRUE(write_file_atomically(folder / entry.name, entry.bytes).ok());
  }
  ASSERT_TRUE(write_sog(folder / "a.sog", cloud).ok());
  const GaussianCloud archive = read_model(folder / "a.sog").or_raise();
  EXPECT_EQ(read_model(folder / "").or_raise().means, archive.means);
  EXPECT_EQ(read_model(folder / "meta.json").or_raise().sh_rest, archive.sh_rest);
}

TEST(Sog, ThatIsBrokenIsSeen) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_sog(folder / "a.sog", random_model(60, 1)).ok());
  expect_broken_files_are_seen(folder / "a.sog");
}

TEST(Sog, MetaThatContradictsTheImagesIsRefused) {
  const auto sound = encode_sog(random_model(60, 1)).or_raise();
  const auto error_with = [&](const char* pointer, const nlohmann::json& value) {
    auto entries = sound;
    nlohmann::json meta = meta_of(entries);
    meta[nlohmann::json::json_pointer(pointer)] = value;
    const std::string text = meta.dump();
    const auto bytes = std::as_bytes(std::span(text));
    entries[0].bytes.assign(bytes.begin(), bytes.end());
    const auto read = decode_sog(entries, "a.sog");
    return read.ok() ? "no error" : read.error().message;
  };
  EXPECT_NE(error_with("/count", 100000).find("too few"), std::string::npos);
  EXPECT_NE(error_with("/count", -1).find("count"), std::string::npos);
  EXPECT_NE(error_with("/version", 3).find("version 3"), std::string::npos);
  EXPECT_NE(error_with("/sh0/files/0", "../x.webp").find("missing"), std::string::npos);
  EXPECT_NE(error_with("/shN/count", 1).find("names vector"), std::string::npos);
  EXPECT_NE(error_with("/shN/bands", 9).find("bands"), std::string::npos);
  EXPECT_NE(error_with("/scales/codebook", {1, 2}).find("scales.codebook"), std::string::npos);
  EXPECT_NE(error_with("/means", 7).find("means"), std::string::npos);
}

}  // namespace
}  // namespace millrace
