// start_instances_blocking(): the count of a sample against the frames that a run then draws.
#include "train/start_instances.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "train/open_device.h"
#include "train/scene.h"
#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

uint64_t count(const TrainOptions& options) {
  const Dataset dataset = load_dataset(options.dataset, dataset_options(options)).or_raise();
  return start_instances_blocking(dataset, options, scene_scale(dataset),
                                  initial_distances(dataset, options))
      .or_raise();
}

TEST(StartInstances, AreThoseOfTheFirstFramesThatARunDraws) {
  TrainOptions options = tiny_options(12);
  options.init_fill = false;
  // Nothing moves: every step draws the Gaussians that the run began with.
  options.means_lr = options.scaling_lr = options.rotation_lr = options.opacity_lr = 0;
  options.noise_lr = 0;
  options.start_refine = options.stop_refine = 0;
  uint64_t most = 0;
  TrainObserver observer;
  observer.step = [&](const StepProgress& step) { most = std::max(most, step.instances); };
  train_or_fail(options, observer);
  EXPECT_EQ(count(options), most);
}

TEST(StartInstances, OfManyGaussiansAreEstimatedFromSomeOfThem) {
  TrainOptions options = tiny_options(1);
  options.random = true;
  options.init_num_pts = options.max_cap = 100000;
  uint64_t drawn = 0;
  TrainObserver observer;
  observer.step = [&](const StepProgress& step) { drawn = step.instances; };
  train_or_fail(options, observer);
  EXPECT_GE(count(options), drawn);
  EXPECT_LE(count(options), drawn * 5 / 4);
}

TEST(StartInstances, OfLargeGaussiansAreRoomThatTheRunBeginsWith) {
  TrainOptions options = tiny_options(8);
  options.random = true;
  options.init_num_pts = options.max_cap = 80000;
  options.init_scaling = 8;
  const TrainSummary summary = train_or_fail(options);
  EXPECT_GT(count(options), uint64_t{1} << 19);
  EXPECT_EQ(summary.replays, 0u);
}

}  // namespace
}  // namespace millrace::test
