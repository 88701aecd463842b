// Which mask belongs to which photograph, and the messages where none does.
#include "data/mask_finder.h"

#include <gtest/gtest.h>

#include "data/capture_writer.h"

namespace millrace::test {
namespace {

DatasetOptions with_masks(const std::string& folder = "") {
  DatasetOptions options;
  options.use_masks = true;
  options.masks = folder;
  return options;
}

// A capture of the named photographs, 32 x 24.
struct Capture {
  TempFolder folder;
  explicit Capture(const std::vector<std::string>& names) {
    TestModel model = small_model(static_cast<int>(names.size()));
    for (size_t i = 0; i < names.size(); ++i) model.images[i].name = names[i];
    model.write_binary(folder / "sparse/0");
    write_photos(model, folder / "images");
  }
  void mask(const fs::path& name, uint32_t width = 32, uint32_t height = 24) const {
    write_png(folder / name, gradient_image(width, height));
  }
  Result<Dataset> load(const DatasetOptions& options = with_masks()) const {
    return load_dataset(folder.path(), options);
  }
  std::string error(const DatasetOptions& options = with_masks()) const {
    const Result<Dataset> dataset = load(options);
    return dataset.ok() ? "no error" : dataset.error().message;
  }
};

std::string mask_name(const Dataset& dataset, size_t view) {
  return dataset.views[view].mask_path.filename().string();
}

TEST(MaskFinder, KnowsTheNamesThatToolsGiveMasks) {
  const Capture capture({"a.png", "b.png", "c.png", "d.png", "sub/e.png", "f.png", "g.PNG"});
  capture.mask("masks/a.png");
  capture.mask("masks/b.png.png");
  capture.mask("masks/c.mask.png");
  capture.mask("masks/d_mask.png");
  capture.mask("masks/sub/e.png", 64, 48);
  capture.mask("masks/f.png.mask");
  capture.mask("masks/G.jpg");
  const Dataset dataset = capture.load().or_raise();
  ASSERT_EQ(dataset.views.size(), 7u);
  const char* expected[] = {"a.png",      "b.png.png", "c.mask.png", "d_mask.png",
                            "f.png.mask", "G.jpg",     "e.png"};
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(mask_name(dataset, i), expected[i]) << i;
  EXPECT_EQ(dataset.views[6].mask_width, 64u);
  EXPECT_TRUE(any_contains(dataset.notes, "7 of 7 photographs have a mask in "));
}

TEST(MaskFinder, PrefersTheWholeNameAndThenTheRelativePath) {
  const Capture capture({"one/a.png", "two/a.png"});
  capture.mask("masks/one/a.png");
  capture.mask("masks/one/a.png.png");
  capture.mask("masks/other/a.png");
  const Dataset dataset = capture.load().or_raise();
  EXPECT_EQ(mask_name(dataset, 0), "a.png.png") << "it names the photograph in full";
  EXPECT_TRUE(dataset.views[1].mask_path.empty()) << "two masks are called a, in other folders";
  EXPECT_TRUE(any_contains(dataset.notes, "1 of 2 photographs have a mask"));
  EXPECT_TRUE(any_contains(dataset.notes, "without: two/a.png"));
}

TEST(MaskFinder, FindsByTheFileNameWhereOneMaskHasIt) {
  const Capture capture({"left/a.png", "left/b.png"});
  capture.mask("segmentation/a.png");
  const Dataset dataset = capture.load().or_raise();
  EXPECT_EQ(mask_name(dataset, 0), "a.png");
  EXPECT_FALSE(has_mask(dataset.views[1]));
}

TEST(MaskFinder, TakesAFolderByNameAndByPathAndOfTheReducedSize) {
  const Capture capture({"a.png"});
  capture.mask("mine/a.png");
  capture.mask("masks/a.png");
  capture.mask("masks_2/a.png", 16, 12);
  EXPECT_EQ(capture.load().or_raise().views[0].mask_width, 32u);
  const auto folder_of = [&](const std::string& masks) {
    return capture.load(with_masks(masks)).or_raise().views[0].mask_path.parent_path().filename();
  };
  EXPECT_EQ(folder_of("mine"), "mine");
  EXPECT_EQ(folder_of((capture.folder / "mine").string()), "mine");
  DatasetOptions reduced = with_masks();
  reduced.resize_factor = 2;
  EXPECT_EQ(capture.load(reduced).or_raise().views[0].mask_width, 16u);
  EXPECT_NE(capture.error(with_masks("no")).find("--masks no: there is no such folder"),
            std::string::npos);
}

TEST(MaskFinder, UsesAlphaWhereThereIsNoFolder) {
  const Capture capture({"a.png", "b.png"});
  write_png(capture.folder / "images/a.png", gradient_image(32, 24, 4));
  const Dataset dataset = capture.load().or_raise();
  EXPECT_TRUE(dataset.views[0].mask_from_alpha);
  EXPECT_FALSE(has_mask(dataset.views[1]));
  EXPECT_TRUE(any_contains(dataset.notes, "alpha channels of 1 of 2"));
}

TEST(MaskFinder, SaysWhatItLookedForWhereThereIsNone) {
  const Capture bare({"a.png"});
  EXPECT_NE(bare.error().find("none of the folders masks, mask, segmentation, dynamic_masks"),
            std::string::npos);
  const Capture other({"a.png"});
  other.mask("masks/x_mask_0.png");
  const std::string message = other.error();
  EXPECT_NE(message.find("a.png.png, a.png, a.mask.png, a_mask.png, a.png.mask"), std::string::npos)
      << message;
  EXPECT_NE(message.find("the folder holds x_mask_0.png"), std::string::npos) << message;
}

TEST(MaskFinder, RefusesAMaskOfAnotherShapeOrWithoutAnImage) {
  const Capture capture({"a.png", "b.png"});
  capture.mask("masks/a.png", 24, 32);
  const std::string turned = capture.error();
  EXPECT_NE(turned.find("a.png: the mask is 24x32, and its photograph 32x24"), std::string::npos);
  EXPECT_NE(turned.find("remove it: a photograph without a mask counts whole"), std::string::npos);
  write_bytes(capture.folder / "masks/a.png", "no image");
  EXPECT_NE(capture.error().find("it is the mask of "), std::string::npos);
  fs::remove(capture.folder / "masks/a.png");
  capture.mask("masks/b.png", 17, 13);  // about the shape, as rounding leaves it
  EXPECT_TRUE(capture.load().ok());
}

TEST(MaskFinder, HintsAtMasksThatAreNotUsed) {
  const Capture capture({"a.png"});
  capture.mask("masks/a.png");
  const Dataset dataset = capture.load(DatasetOptions()).or_raise();
  EXPECT_FALSE(has_mask(dataset.views[0]));
  EXPECT_TRUE(any_contains(dataset.notes, "--mask-mode ignore"));
  EXPECT_FALSE(any_contains(Capture({"a.png"}).load(DatasetOptions()).or_raise().notes, "mask"));
}

}  // namespace
}  // namespace millrace::test
