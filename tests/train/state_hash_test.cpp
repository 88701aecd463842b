// state_sha256: every bit of live state counts, and nothing else does.
#include "train/state_hash.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <set>

#include "base/philox.h"

namespace millrace::test {
namespace {

constexpr uint32_t kRows = 40;
constexpr HashedProgress kProgress = {7, 42};

GaussianCloud make_cloud(uint32_t n) {
  const auto u = [](uint32_t row, uint32_t lane) {
    return 2 * uniform_open(philox(3, 0, RandomPurpose::Synthetic, row, lane)[0]) - 1;
  };
  GaussianCloud cloud;
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t k = 0; k < 3; ++k) cloud.means.push_back(u(i, k));
    for (uint32_t k = 0; k < 3; ++k) cloud.log_scales.push_back(u(i, 3 + k));
    for (uint32_t k = 0; k < 4; ++k) cloud.rotations.push_back(u(i, 6 + k));
    cloud.opacities.push_back(u(i, 10));
    for (uint32_t k = 0; k < 3; ++k) cloud.sh0.push_back(u(i, 11 + k));
    for (uint32_t k = 0; k < 45; ++k) cloud.sh_rest.push_back(u(i, 14 + k));
  }
  return cloud;
}

struct Bench {
  std::unique_ptr<Device> device = make_checked(open_device("cpu:2").or_raise());
  Model model;
  explicit Bench(uint64_t row_capacity = 64, uint32_t n = kRows)
      : model(make_model(*device, make_cloud(n), 3, row_capacity)) {}

  std::string hash_blocking(HashedProgress progress = kProgress) {
    return state_sha256_blocking(model, progress).or_raise();
  }
  // Flips the lowest bit of one float of a group's tensor.
  void flip(const Tensor& tensor, uint64_t index) {
    const auto place = static_cast<int64_t>(index);
    const Tensor one = tensor.reshape({-1}).slice(0, place, place + 1);
    const Ticket ticket = read_later(one);
    device->wait_blocking(device->submit(), {WaitReason::Test, "test.flip"}).or_raise();
    auto bits = ticket.as<uint32_t>();
    bits ^= 1;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    one.upload(std::vector<float>{value});
  }
};

TEST(StateHash, IsSixtyFourLowerCaseHexDigitsAndRepeatable) {
  Bench a, b;
  const std::string hash = a.hash_blocking();
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(hash, a.hash_blocking());
  EXPECT_EQ(hash, b.hash_blocking());
}

TEST(StateHash, ChangesWithOneBitOfEveryLaneOfEveryTensor) {
  Bench bench;
  std::set<std::string> seen = {bench.hash_blocking()};
  size_t n_flips = 0;
  for (const ParameterGroup* group : {&bench.model.geometry, &bench.model.sh_rest}) {
    for (const Tensor* tensor : {&group->value, &group->first_moment, &group->second_moment}) {
      for (uint32_t lane = 0; lane < group->lanes; ++lane) {
        // The last live row of the second block at odd lanes, a row of the first one at even lanes.
        const uint64_t index = row_index(lane % 2 ? kRows - 1 : lane / 2, lane, group->lanes);
        bench.flip(*tensor, index);
        seen.insert(bench.hash_blocking());
        bench.flip(*tensor, index);
        ++n_flips;
      }
    }
  }
  EXPECT_EQ(n_flips, 3 * (14u + 45u));
  EXPECT_EQ(seen.size(), n_flips + 1) << "two states share a hash";
}

TEST(StateHash, ChangesWithStatisticsBoundsAndFreeRows) {
  Bench bench;
  std::set<std::string> seen = {bench.hash_blocking()};
  keep_statistics(bench.model, kRows);
  seen.insert(bench.hash_blocking());
  for (uint32_t lane = 0; lane < kStatisticLanes; ++lane) {
    const uint64_t index = row_index(kRows - 1 - lane, lane, kStatisticLanes);
    bench.flip(bench.model.statistics, index);
    seen.insert(bench.hash_blocking());
    bench.flip(bench.model.statistics, index);
  }
  constexpr size_t kBounds = offsetof(Control, bounds) / 4,
                   kFree = (offsetof(Control, counts) + offsetof(Counts, free)) / 4;
  for (const size_t word : {kFree, kBounds, kBounds + 5, kBounds + 6, kBounds + 12}) {
    const auto at = static_cast<int64_t>(word);
    const Tensor one = bench.model.control.slice(0, at, at + 1);
    one.upload(std::vector<uint32_t>{1});
    seen.insert(bench.hash_blocking());
    one.upload(std::vector<uint32_t>{0});
  }
  EXPECT_EQ(seen.size(), 2u + kStatisticLanes + 5u);
}

TEST(StateHash, ChangesWithTheNumberOfRows) {
  Bench a, b(64, kRows - 1);
  EXPECT_NE(a.hash_blocking(), b.hash_blocking());
}

TEST(StateHash, ChangesWithStepAndSeed) {
  Bench bench;
  const std::set<std::string> hashes = {
      bench.hash_blocking({7, 42}), bench.hash_blocking({8, 42}), bench.hash_blocking({7, 43}),
      bench.hash_blocking({7, 42 + (1ull << 32)}), bench.hash_blocking({42, 7})};
  EXPECT_EQ(hashes.size(), 5u);
}

TEST(StateHash, DoesNotSeeCapacity) {
  Bench small(kRows), large(4096);
  EXPECT_EQ(small.hash_blocking(), large.hash_blocking());
}

TEST(StateHash, DoesNotSeeRowsBeyondTheLiveOnes) {
  Bench bench(128);
  const std::string before = bench.hash_blocking();
  for (const ParameterGroup* group : {&bench.model.geometry, &bench.model.sh_rest}) {
    for (const Tensor* tensor : {&group->value, &group->first_moment, &group->second_moment}) {
      for (const uint64_t row : {kRows, 63u, 64u, 127u}) {
        bench.flip(*tensor, row_index(row, 3, group->lanes));
      }
    }
  }
  EXPECT_EQ(bench.hash_blocking(), before);
}

TEST(StateHash, DoesNotSeeMetricsAndCountsOfTheFrameInFlight) {
  Bench bench;
  const std::string before = bench.hash_blocking();
  const Ticket ticket = read_later(bench.model.control);
  bench.device->wait_blocking(bench.device->submit(), {WaitReason::Test, "test.control"})
      .or_raise();
  auto control = ticket.as<Control>();
  control.counts.instances = 123;
  control.counts.visible = 5;
  control.metrics.loss = 1;
  control.gate.epoch = 9;
  std::vector<uint32_t> words(sizeof(control) / 4);
  std::memcpy(words.data(), &control, sizeof(control));
  bench.model.control.upload(words);
  EXPECT_EQ(bench.hash_blocking(), before);
}

}  // namespace
}  // namespace millrace::test
