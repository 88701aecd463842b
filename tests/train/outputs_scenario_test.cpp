// Evaluations and snapshots are transactions in flight: they never wait, they show the state of
// their step whatever is replayed, and they leave training as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "train/runner_bench.h"

namespace millrace::test {
namespace {

constexpr uint32_t kSteps = 60;
// The first state, one in the middle of steps, those around a refinement and a reordering, the
// last.
const OutputPlan kPlan = {.saves = {0, 7, 21, 50, kSteps}, .evals = {0, 20, 21, 26, 50, kSteps}};

std::vector<std::byte> copy_of(const Ticket& ticket) {
  return {ticket.bytes().begin(), ticket.bytes().end()};
}

// Keeps all that a run shows.
struct Album : RunSink {
  std::vector<std::pair<uint32_t, uint32_t>> views;  // steps and view, in the order of the calls
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::byte>> images;
  std::vector<uint32_t> saves;
  std::map<uint32_t, std::vector<float>> rows;
  uint64_t n_asked = 0;
  std::optional<Error> fails_with;

  Result<void> make_room_blocking() override {
    ++n_asked;
    return {};
  }
  void rendered(const RenderedView& view) override {
    views.emplace_back(view.steps, view.view);
    images[{view.steps, view.view}] = copy_of(view.image);
  }
  void snapshot(uint32_t steps, ModelSnapshot snapshot) override {
    saves.push_back(steps);
    rows[steps] = rows_of(snapshot, 0);
  }
  Result<void> deliver() override {
    if (fails_with) return *fails_with;
    return {};
  }
};

struct Shown {
  Album album;
  std::string hash;
  uint64_t replays = 0;
};

void show_run(const TrainOptions& options, Room room, Shown* shown) {
  RunnerBench bench(options, room);
  bench.plan_outputs(kPlan, &shown->album);
  bench.run_blocking(kSteps).or_raise();
  shown->hash = bench.hash_blocking();
  shown->replays = bench.runner->replays();
}

const Shown& reference() {
  static const Shown shown = [] {
    Shown made;
    show_run(tiny_options(kSteps), {}, &made);
    EXPECT_EQ(made.replays, 0u);
    return made;
  }();
  return shown;
}

void expect_same(const Shown& shown) {
  EXPECT_EQ(shown.hash, reference().hash);
  EXPECT_EQ(shown.album.views, reference().album.views);
  EXPECT_EQ(shown.album.saves, reference().album.saves);
  EXPECT_TRUE(shown.album.images == reference().album.images);
  EXPECT_TRUE(shown.album.rows == reference().album.rows);
}

TEST(Outputs, EveryPlannedViewAndSnapshotComesOnceAndInOrder) {
  std::vector<std::pair<uint32_t, uint32_t>> views;
  for (const uint32_t steps : kPlan.evals) {
    for (const uint32_t view : {0u, 1u}) views.emplace_back(steps, view);
  }
  EXPECT_EQ(reference().album.views, views);
  EXPECT_EQ(reference().album.saves, kPlan.saves);
}

TEST(Outputs, LeaveTheStateAsItIsWithoutThem) {
  RunnerBench bench(tiny_options(kSteps));
  ASSERT_TRUE(bench.run_blocking(kSteps).ok());
  EXPECT_EQ(bench.hash_blocking(), reference().hash);
}

TEST(Outputs, ShowTheStateAfterTheirStep) {
  for (const uint32_t steps : {7u, 21u, 50u}) {
    RunnerBench bench(tiny_options(kSteps));
    ASSERT_TRUE(bench.run_blocking(steps).ok());
    Album album;
    bench.plan_outputs({}, &album);
    ASSERT_TRUE(bench.runner->snapshot_now_blocking().ok());
    EXPECT_TRUE(album.rows.at(steps) == reference().album.rows.at(steps)) << steps;
  }
}

TEST(Outputs, AreTheSameWhateverStepIsRefusedBeforeOrBehindThem) {
  for (const uint32_t step : {6u, 7u, 19u, 20u, 21u, 25u, 49u, kSteps - 1}) {
    TrainOptions options = tiny_options(kSteps);
    options.test_capacity = {{1, step}};
    Shown shown;
    show_run(options, {}, &shown);
    EXPECT_EQ(shown.replays, 1u) << step;
    expect_same(shown);
  }
}

TEST(Outputs, AreTheSameWhenFramesOfStepsAndOfEvaluationsAreCutAtRandom) {
  uint64_t replays = 0;
  for (const double probability : {0.1, 0.3, 1.0}) {
    TrainOptions options = tiny_options(kSteps);
    options.test_capacity_random = probability;
    Shown shown;
    show_run(options, {}, &shown);
    expect_same(shown);
    replays += shown.replays;
  }
  EXPECT_GE(replays, 40u);
}

TEST(Outputs, AnEvaluationThatOutgrowsItsRoomIsRenderedAgainWithMore) {
  Shown shown;
  show_run(tiny_options(kSteps), {.rows = 0, .instances = 1}, &shown);
  EXPECT_GE(shown.replays, 1u);
  expect_same(shown);
}

TEST(Outputs, AreTheSameInBands) {
  TrainOptions options = tiny_options(kSteps);
  options.instance_budget = 200 * instance_bytes(true);
  Shown shown;
  show_run(options, {.rows = 0, .instances = 64}, &shown);
  expect_same(shown);
}

TEST(Outputs, AreRecordedWithoutAnyWaitButPacing) {
  for (const char* device : {"cpu", "cpu:lazy"}) {
    TrainOptions options = tiny_options(kSteps);
    options.device = device;
    RunnerBench bench(options);
    bench.keep_decoders_ahead();
    Album album;
    bench.plan_outputs(kPlan, &album);
    // The first photographs are waited for.
    ASSERT_TRUE(bench.runner->run_until_blocking(12, bench.stop, nullptr).ok());
    bench.device.events.clear();
    const uint64_t waits = bench.device.ledger().count_except_pacing();
    ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, nullptr).ok());
    EXPECT_EQ(bench.device.ledger().count_except_pacing(), waits) << device;
    for (const QueueEvent& event : bench.device.events) {
      if (event.kind == QueueEvent::kWait) {
        EXPECT_EQ(event.reason, WaitReason::Pacing);
      }
    }
    EXPECT_GE(album.n_asked, 2 * (kPlan.evals.size() - 1));
  }
}

TEST(Outputs, ViewsAreNotRenderedFurtherAheadThanSteps) {
  RunnerBench bench(tiny_options(kSteps));
  Album album;
  bench.plan_outputs({.saves = {}, .evals = {10, 11, 12}}, &album);
  bench.device.events.clear();
  ASSERT_TRUE(bench.runner->run_until_blocking(kSteps, bench.stop, nullptr).ok());
  std::vector<Point> submitted;
  for (const QueueEvent& event : bench.device.events) {
    if (event.kind == QueueEvent::kSubmit) submitted.push_back(event.point);
    if (event.kind != QueueEvent::kWait) continue;
    const auto newer =
        std::count_if(submitted.begin(), submitted.end(), [&](Point p) { return p > event.point; });
    // Refinements and reorderings, which hold little, come on top.
    EXPECT_LE(newer, kRunAhead + 2);
  }
}

TEST(Outputs, AnErrorOfTheSinkEndsTheRunAndTheStateCanStillBeSaved) {
  RunnerBench bench(tiny_options(kSteps));
  Album album;
  bench.plan_outputs(kPlan, &album);
  ASSERT_TRUE(bench.run_blocking(30).ok());
  album.fails_with = Error{ErrorCode::Output, "the disk is full"};
  const Result<void> ran = bench.runner->run_until_blocking(kSteps, bench.stop, nullptr);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code, ErrorCode::Output);
  album.fails_with.reset();
  ASSERT_TRUE(bench.runner->settle_blocking(nullptr).ok());
  ASSERT_TRUE(bench.runner->snapshot_now_blocking().ok());
  EXPECT_EQ(album.saves.back(), bench.runner->next_step());
}

}  // namespace
}  // namespace millrace::test
