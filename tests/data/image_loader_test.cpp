// ImageLoader: what waits, what is kept, and what is forgotten.
#include "data/image_loader.h"

#include <gtest/gtest.h>

#include "capture_writer.h"

namespace millrace::test {
namespace {

constexpr uint64_t kImageBytes = 20 * 10 * 3;

/// `n` views whose images differ in their first pixel.
struct Photos {
  explicit Photos(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      Image8 image = gradient_image(20, 10);
      image.pixels[0] = static_cast<uint8_t>(i);
      View view;
      view.image_path = folder / (std::to_string(i) + ".png");
      write_png(view.image_path, image);
      view.file_width = 20, view.file_height = 10;
      view.lens = {LensKind::Pinhole, 20, 10, 20, 20, 10, 5, 0, 0, 0, 0};
      view.camera = {20, 10, 20, 20, 10, 5, {}};
      views.push_back(view);
    }
  }
  TempFolder folder;
  std::vector<View> views;
};

TEST(ImageLoader, EveryViewComesBackAsItself) {
  const Photos photos(30);
  WaitLedger ledger;
  ImageLoader loader(photos.views, {}, ledger);
  for (uint32_t i = 0; i < 30; ++i) loader.prefetch(i);
  for (uint32_t i = 30; i-- > 0;) {
    EXPECT_EQ(loader.get_blocking(i).or_raise()->pixels[0], i);
  }
  EXPECT_EQ(loader.cached_bytes(), 30 * kImageBytes);
}

TEST(ImageLoader, AWaitIsRecordedAsDecodeAndACachedImageCostsNone) {
  const Photos photos(2);
  WaitLedger ledger;
  ImageLoaderOptions options;
  options.artificial_delay_ms = 30;
  ImageLoader loader(photos.views, options, ledger);
  EXPECT_EQ(loader.try_get(0), nullptr);
  EXPECT_EQ(ledger.count(WaitReason::Decode), 0u);
  (void)loader.get_blocking(0).or_raise();
  EXPECT_EQ(ledger.count(WaitReason::Decode), 1u);
  EXPECT_EQ(ledger.records()[0].site, "loader.decode");
  (void)loader.get_blocking(0).or_raise();
  EXPECT_NE(loader.try_get(0), nullptr);
  EXPECT_EQ(ledger.count(WaitReason::Decode), 1u);
}

TEST(ImageLoader, TheBudgetIsKeptByForgettingTheLeastRecentlyUsed) {
  const Photos photos(10);
  WaitLedger ledger;
  ImageLoaderOptions options;
  options.cache_bytes = 3 * kImageBytes;
  ImageLoader loader(photos.views, options, ledger);
  for (uint32_t i = 0; i < 10; ++i) {
    (void)loader.get_blocking(i).or_raise();
    EXPECT_LE(loader.cached_bytes(), 4 * kImageBytes);
  }
  EXPECT_NE(loader.try_get(9), nullptr);
  EXPECT_NE(loader.try_get(8), nullptr);
  EXPECT_EQ(loader.try_get(0), nullptr);
}

TEST(ImageLoader, ImagesAskedForOrHandedOutAreNeverLost) {
  const Photos photos(8);
  WaitLedger ledger;
  ImageLoaderOptions options;
  options.cache_bytes = 1;
  ImageLoader loader(photos.views, options, ledger);
  std::vector<std::shared_ptr<const Image8>> held;
  for (uint32_t i = 0; i < 8; ++i) held.push_back(loader.get_blocking(i).or_raise());
  EXPECT_EQ(loader.cached_bytes(), 8 * kImageBytes);
  const uint64_t waits = ledger.count(WaitReason::Decode);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(loader.get_blocking(i).or_raise(), held[i]);
  EXPECT_EQ(ledger.count(WaitReason::Decode), waits);
  held.clear();
  (void)loader.get_blocking(0).or_raise();
  EXPECT_LE(loader.cached_bytes(), 2 * kImageBytes);
}

TEST(ImageLoader, ImagesOutliveTheLoader) {
  const Photos photos(1);
  WaitLedger ledger;
  std::shared_ptr<const Image8> image;
  {
    ImageLoader loader(photos.views, {}, ledger);
    image = loader.get_blocking(0).or_raise();
  }
  EXPECT_EQ(image->width, 20u);
}

TEST(ImageLoader, ADamagedBodyIsAnErrorThatNamesThePath) {
  const Photos photos(3);
  const fs::path path = photos.views[1].image_path;
  write_bytes(path, read_bytes(path).substr(0, 60));
  WaitLedger ledger;
  ImageLoader loader(photos.views, {}, ledger);
  const auto image = loader.get_blocking(1);
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().message.find("1.png"), std::string::npos);
  EXPECT_EQ(loader.try_get(1), nullptr);
  EXPECT_FALSE(loader.get_blocking(1));
  EXPECT_TRUE(loader.get_blocking(2));
}

TEST(ImageLoader, CountsWhatIsAskedForAndNotDecodedYet) {
  const Photos photos(3);
  WaitLedger ledger;
  ImageLoaderOptions options;
  options.n_threads = 1;
  options.artificial_delay_ms = 30;
  ImageLoader loader(photos.views, options, ledger);
  EXPECT_EQ(loader.undecoded(), 0u);
  for (uint32_t i = 0; i < 3; ++i) loader.prefetch(i);
  EXPECT_EQ(loader.undecoded(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(loader.get_blocking(i).ok());
  EXPECT_EQ(loader.undecoded(), 0u);
}

TEST(ImageLoader, EndsWhileDecodesAreQueued) {
  const Photos photos(20);
  WaitLedger ledger;
  ImageLoaderOptions options;
  options.artificial_delay_ms = 5;
  ImageLoader loader(photos.views, options, ledger);
  for (uint32_t i = 0; i < 20; ++i) loader.prefetch(i);
}

}  // namespace
}  // namespace millrace::test
