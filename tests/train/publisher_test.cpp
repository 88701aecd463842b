// Saving and scoring beside training: files, what is told, and what goes wrong.
#include "train/publisher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/file.h"
#include "io/ply.h"
#include "tensor/ops.h"
#include "train/tiny_capture.h"

namespace millrace::test {
namespace {

namespace fs = std::filesystem;

std::vector<View> held_out_views() {
  std::vector<View> views;
  for (const View& view : tiny_dataset().views) {
    if (view.held_out) views.push_back(view);
  }
  return views;
}

struct Bench {
  explicit Bench(const std::string& name) {
    setup.folder.root = scratch_folder() / "publisher" / name;
    setup.eval_views = held_out_views();
    setup.last_step = 9;
    observer.saved = [this](const fs::path& path) { told.push_back(path.filename().string()); };
    observer.evaluated = [this](const EvalResult& r) { evals.push_back(r); };
    observer.warning = [this](const std::string& text) { warnings.push_back(text); };
  }

  RenderedView view(uint32_t steps, uint32_t index, float value = 0.5f) {
    const FrameSize size = {64, 48};
    const std::vector<float> pixels(size_t{3} * size.width * size.height, value);
    const Tensor image =
        Tensor::from_host(*device, pixels, Shape{3, size.height, size.width}, "image");
    const Ticket ticket = read_later(image);
    device->wait_blocking(device->submit(), {WaitReason::Test, "test.image"}).or_raise();
    return {steps, index, 123, size, ticket};
  }

  // `n_bad` of ten Gaussians hold no number.
  ModelSnapshot snapshot(int n_bad) {
    GaussianCloud cloud;
    cloud.means.assign(30, 1.0f);
    cloud.log_scales.assign(30, -3.0f);
    cloud.rotations.assign(40, 0.5f);
    cloud.opacities.assign(10, 0.0f);
    cloud.sh0.assign(30, 0.1f);
    for (int i = 0; i < n_bad; ++i) {
      cloud.means[3 * static_cast<size_t>(i)] = std::numeric_limits<float>::quiet_NaN();
    }
    const Model model = make_model(*device, cloud, 0, 10);
    ModelSnapshot read = read_model_later(model, 10, /*with_moments=*/false);
    device->wait_blocking(device->submit(), {WaitReason::Test, "test.model"}).or_raise();
    return read;
  }

  std::unique_ptr<Device> device = open_device("cpu:1").or_raise();
  Publisher::Setup setup;
  TrainObserver observer;
  std::vector<std::string> told, warnings;
  std::vector<EvalResult> evals;
};

TEST(Publisher, SavesSnapshotsAndTellsOfThemOnDelivery) {
  Bench bench("saves");
  Publisher publisher(bench.setup, *bench.device, bench.observer);
  publisher.snapshot(4, bench.snapshot(0));
  ASSERT_TRUE(publisher.finish_blocking().ok());
  EXPECT_EQ(bench.told, std::vector<std::string>{"point_cloud.ply"});
  EXPECT_EQ(publisher.ply(), bench.setup.folder.ply(4));
  EXPECT_EQ(read_gaussian_ply(publisher.ply()).or_raise().count(), 10u);
}

TEST(Publisher, ScoresAnEvaluationOnceItsLastViewCame) {
  Bench bench("scores");
  Publisher publisher(bench.setup, *bench.device, bench.observer);
  publisher.rendered(bench.view(5, 0));
  ASSERT_TRUE(publisher.finish_blocking().ok());
  EXPECT_TRUE(bench.evals.empty());
  publisher.rendered(bench.view(5, 1));
  ASSERT_TRUE(publisher.finish_blocking().ok());
  ASSERT_EQ(bench.evals.size(), 1u);
  EXPECT_EQ(bench.evals[0].step, 5u);
  EXPECT_EQ(bench.evals[0].gaussians, 123u);
  EXPECT_EQ(bench.evals[0].n_views, 2u);
  EXPECT_GT(bench.evals[0].psnr, 5);
  EXPECT_TRUE(fs::exists(bench.setup.folder.stats(5)));
  EXPECT_FALSE(fs::exists(bench.setup.folder.root / "renders")) << "only the last step's are kept";
  EXPECT_EQ(publisher.contact_rows().size(), 2u);
}

TEST(Publisher, KeepsTheRendersOfTheLastStep) {
  Bench bench("renders");
  Publisher publisher(bench.setup, *bench.device, bench.observer);
  for (const uint32_t index : {0u, 1u}) publisher.rendered(bench.view(9, index));
  ASSERT_TRUE(publisher.finish_blocking().ok());
  for (const View& view : bench.setup.eval_views) {
    EXPECT_TRUE(fs::exists(bench.setup.folder.render(view.name))) << view.name;
  }
}

TEST(Publisher, APhotographThatCannotBeReadLeavesItsViewWithoutAScore) {
  Bench bench("unreadable");
  bench.setup.eval_views[0].image_path = scratch_folder() / "no such.jpg";
  Publisher publisher(bench.setup, *bench.device, bench.observer);
  for (const uint32_t index : {0u, 1u}) publisher.rendered(bench.view(5, index));
  ASSERT_TRUE(publisher.finish_blocking().ok());
  ASSERT_EQ(bench.evals.size(), 1u);
  EXPECT_EQ(bench.evals[0].n_views, 1u);
  ASSERT_EQ(bench.warnings.size(), 1u);
  EXPECT_NE(bench.warnings[0].find("no such.jpg"), std::string::npos) << bench.warnings[0];
}

TEST(Publisher, RowsWithoutNumbersAreNotSavedAndSaid) {
  Bench bench("some bad");
  Publisher publisher(bench.setup, *bench.device, bench.observer);
  publisher.snapshot(4, bench.snapshot(3));
  ASSERT_TRUE(publisher.finish_blocking().ok());
  EXPECT_EQ(read_gaussian_ply(publisher.ply()).or_raise().count(), 7u);
  ASSERT_EQ(bench.warnings.size(), 1u);
  EXPECT_NE(bench.warnings[0].find("3 of 10"), std::string::npos) << bench.warnings[0];
}

TEST(Publisher, ASnapshotWithoutNumbersIsADivergence) {
  Bench bench("most bad");
  Publisher publisher(bench.setup, *bench.device, bench.observer);
  publisher.snapshot(4, bench.snapshot(6));
  const Result<void> finished = publisher.finish_blocking();
  ASSERT_FALSE(finished.ok());
  EXPECT_EQ(finished.error().code, ErrorCode::Diverged);
  EXPECT_EQ(read_gaussian_ply(publisher.ply()).or_raise().count(), 4u);
}

TEST(Publisher, AFolderThatCannotBeWrittenIsAnErrorThatIsDeliveredOnce) {
  Bench bench("blocked");
  fs::create_directories(bench.setup.folder.root.parent_path());
  std::ofstream(bench.setup.folder.root) << "a file where the folder should be";
  Publisher publisher(bench.setup, *bench.device, bench.observer);
  publisher.snapshot(4, bench.snapshot(0));
  const Result<void> finished = publisher.finish_blocking();
  ASSERT_FALSE(finished.ok());
  EXPECT_EQ(finished.error().code, ErrorCode::Output);
  EXPECT_NE(finished.error().message.find("blocked"), std::string::npos);
  EXPECT_TRUE(publisher.deliver().ok());
}

TEST(Publisher, TooManyUnscoredImagesMakeTheNextViewWaitAndTheLedgerSaysSo) {
  Bench bench("backlog");
  bench.setup.most_waiting_bytes = 1;
  bench.setup.decode_delay_ms = 30;
  Publisher publisher(bench.setup, *bench.device, bench.observer);
  WaitLedger& ledger = bench.device->ledger();
  const uint64_t before = ledger.count(WaitReason::UserRead);
  ASSERT_TRUE(publisher.make_room_blocking().ok());
  EXPECT_EQ(ledger.count(WaitReason::UserRead), before) << "nothing is waiting yet";
  publisher.rendered(bench.view(5, 0));
  ASSERT_TRUE(publisher.make_room_blocking().ok());
  EXPECT_EQ(ledger.count(WaitReason::UserRead), before + 1);
  EXPECT_EQ(ledger.records().back().site, "trainer.evaluation_backlog");
}

}  // namespace
}  // namespace millrace::test
