// Residency of photographs: budgets, pinned targets, and the waits that a slow decode costs.
#include "train/photographs.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "train/runner_bench.h"

namespace millrace::test {
namespace {

constexpr uint64_t kTargetBytes = 3 * 64 * 48;

const std::vector<View>& training_views() {
  static const std::vector<View> views = [] {
    std::vector<View> out;
    for (const View& view : tiny_dataset().views) {
      if (!view.held_out) out.push_back(view);
    }
    return out;
  }();
  return views;
}

std::vector<uint8_t> pixels_blocking(Device& device, const Tensor& target) {
  const Ticket ticket = read_later(target);
  device.wait_blocking(device.submit(), {WaitReason::Test, "test.pixels"}).or_raise();
  const auto* bytes = reinterpret_cast<const uint8_t*>(ticket.bytes().data());
  return {bytes, bytes + ticket.bytes().size()};
}

// The photograph of `view` as planes, read without a loader.
std::vector<uint8_t> planes_of(const View& view) {
  const Image8 image = load_view_image(view, {0, 0, 0}).or_raise();
  std::vector<uint8_t> planes(image.pixels.size());
  const size_t n = planes.size() / 3;
  for (size_t i = 0; i < n; ++i) {
    for (size_t c = 0; c < 3; ++c) planes[c * n + i] = image.pixels[3 * i + c];
  }
  return planes;
}

struct Bench {
  std::unique_ptr<Device> device = make_checked(open_device("cpu:2").or_raise());
  const std::vector<View>& views = training_views();
  Photographs photographs;
  explicit Bench(uint64_t budget) : photographs(*device, views, {}, budget) {}
  uint64_t resident_bytes() const {
    for (const MemoryStats::Kind& kind : device->memory().by_label) {
      if (kind.label == "photographs") return kind.bytes;
    }
    return 0;
  }
};

TEST(Photographs, StayOnTheDeviceIfTheyFit) {
  Bench bench(kTargetBytes * training_views().size());
  EXPECT_TRUE(bench.photographs.all_resident());
  uint32_t last = 0;
  ASSERT_TRUE(bench.photographs
                  .preload_blocking({0},
                                    [&](uint32_t done, uint32_t total) {
                                      EXPECT_EQ(done, ++last);
                                      EXPECT_EQ(total, bench.views.size());
                                    })
                  .ok());
  EXPECT_EQ(last, bench.views.size());
  const uint64_t decodes = bench.device->ledger().count(WaitReason::Decode);
  for (uint32_t view = 0; view < bench.views.size(); ++view) {
    const Tensor target = bench.photographs.target_blocking(view).or_raise().pixels;
    EXPECT_EQ(pixels_blocking(*bench.device, target), planes_of(bench.views[view]));
  }
  EXPECT_EQ(bench.device->ledger().count(WaitReason::Decode), decodes);
  EXPECT_EQ(bench.photographs.loads(), bench.views.size()) << "one load each";
}

TEST(Photographs, LoadsAreCountedAgainAfterAnEviction) {
  Bench bench(2 * kTargetBytes);  // one on the device, one decoded
  ASSERT_FALSE(bench.photographs.all_resident());
  EXPECT_EQ(bench.photographs.total_bytes(), kTargetBytes * bench.views.size());
  for (const uint32_t view : {0u, 0u, 1u, 0u}) bench.photographs.target_blocking(view).or_raise();
  EXPECT_EQ(bench.photographs.loads(), 3u);
  EXPECT_GT(bench.photographs.load_seconds(), 0);
}

TEST(Photographs, HeldTargetsStayValidAfterTheyGiveWay) {
  Bench bench(2 * 2 * kTargetBytes);  // half of it for targets: two
  EXPECT_FALSE(bench.photographs.all_resident());
  ASSERT_TRUE(bench.photographs.preload_blocking({0, 1, 2}, {}).ok());
  std::vector<Tensor> held;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t view = 0; view < bench.views.size(); ++view) {
      held.push_back(bench.photographs.target_blocking(view).or_raise().pixels);
    }
  }
  for (size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(pixels_blocking(*bench.device, held[i]),
              planes_of(bench.views[i % bench.views.size()]))
        << i;
  }
}

TEST(Photographs, TheBudgetLimitsWhatStaysOnTheDevice) {
  Bench bench(2 * 3 * kTargetBytes);
  for (int pass = 0; pass < 3; ++pass) {
    for (uint32_t view = 0; view < bench.views.size(); ++view) {
      ASSERT_TRUE(bench.photographs.target_blocking(view).ok());
    }
  }
  bench.device->wait_blocking(bench.device->submit(), {WaitReason::Test, "test.settle"}).or_raise();
  EXPECT_LE(bench.resident_bytes(), 3 * (kTargetBytes + 256));
  EXPECT_GE(bench.resident_bytes(), kTargetBytes);
}

TEST(Photographs, WhatIsNeededNextGivesWayLast) {
  Bench bench(2 * 3 * kTargetBytes);  // three targets
  std::vector<Tensor> first;
  for (const uint32_t view : {0u, 1u, 2u}) {
    first.push_back(bench.photographs.target_blocking(view).or_raise().pixels);
  }
  const std::vector<uint32_t> order = {0, 2, 3, 1};
  bench.photographs.prefetch(order);
  ASSERT_TRUE(bench.photographs.target_blocking(3).ok());  // one of them gives way
  EXPECT_TRUE(bench.photographs.target_blocking(0).or_raise().pixels.overlaps(first[0]));
  EXPECT_TRUE(bench.photographs.target_blocking(2).or_raise().pixels.overlaps(first[2]));
  EXPECT_FALSE(bench.photographs.target_blocking(1).or_raise().pixels.overlaps(first[1]));
}

TEST(Photographs, ATargetLargerThanTheBudgetIsServedAllTheSame) {
  Bench bench(1);
  for (const uint32_t view : {0u, 1u, 0u}) {
    const Tensor target = bench.photographs.target_blocking(view).or_raise().pixels;
    EXPECT_EQ(pixels_blocking(*bench.device, target), planes_of(bench.views[view]));
  }
}

TEST(Photographs, HaveTheirRidgeMapsWhereStructureIsAskedForAndNotOtherwise) {
  const std::vector<View> views = training_views();
  Bench plain(1u << 30);
  EXPECT_FALSE(plain.photographs.target_blocking(0).or_raise().structure.defined());
  Photographs with(*plain.device, views, {}, 2 * 2 * (kTargetBytes + kTargetBytes / 3),
                   Photographs::kMostAhead, /*with_structure=*/true);
  EXPECT_FALSE(with.all_resident());
  EXPECT_EQ(with.total_bytes(), (kTargetBytes + kTargetBytes / 3) * views.size());
  for (uint32_t view = 0; view < 3; ++view) {
    const Target target = with.target_blocking(view).or_raise();
    const std::vector<uint8_t> ridges = pixels_blocking(*plain.device, target.structure);
    EXPECT_EQ(ridges.size(), kTargetBytes / 3);
    EXPECT_GT(*std::max_element(ridges.begin(), ridges.end()), 63) << "above its mean somewhere";
  }
}

TEST(Photographs, AnUnreadableFileIsAnErrorThatNamesIt) {
  std::vector<View> views = training_views();
  views[1].image_path = scratch_folder() / "no-such-image.jpg";
  const auto device = make_checked(open_device("cpu:2").or_raise());
  Photographs photographs(*device, views, {}, 1u << 30);
  const Result<void> loaded = photographs.preload_blocking({0}, {});
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::Dataset);
  EXPECT_NE(loaded.error().message.find("no-such-image.jpg"), std::string::npos);
}

TEST(PhotographsInTraining, NothingWaitsForADecodeAfterThePreload) {
  RunnerBench bench(tiny_options(40));
  ASSERT_TRUE(bench.photographs->all_resident());
  const uint64_t decodes = bench.device.ledger().count(WaitReason::Decode);
  ASSERT_TRUE(bench.run_blocking(40).ok());
  EXPECT_EQ(bench.device.ledger().count(WaitReason::Decode), decodes);
}

TEST(PhotographsInTraining, SlowDecodesAreWaitedForAndTheReportSaysSo) {
  TrainOptions options = tiny_options(60);
  options.image_cache_bytes = 2 * 2 * kTargetBytes;
  options.test_decode_delay_ms = 20;
  const TrainSummary summary = train_or_fail(options);
  EXPECT_TRUE(summary.why_slow.starts_with("decode-bound")) << summary.why_slow;
  EXPECT_GT(summary.steady_waits_per_step, 0);
  const auto report =
      nlohmann::json::parse(read_text_file(summary.report).or_raise(), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  uint64_t n_decode = 0;
  for (const auto& row : report["waits"]["by_site"]) {
    if (row["reason"] == "Decode") n_decode += row["count"].get<uint64_t>();
  }
  EXPECT_GT(n_decode, 20u);
}

}  // namespace
}  // namespace millrace::test
