// Waits that go round the ledger: on a device that stalls, each is a deadlock that names the
// function which waits.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "device/test_hooks.h"
#include "simulated/simulated_device.h"
#include "train/runner_bench.h"

namespace millrace::test {
namespace {

constexpr uint32_t kSteps = 60;
constexpr const char* kWatched = "simulated:stall,watchdog=400";

void spin_on_the_timeline(Device& device, const WaitSite&) {
  const Point point = device.submit();
  while (device.poll() < point) {
  }
}

void spin_on_a_ticket(Device& device, const WaitSite&) {
  const BufferId buffer = device.allocate(256, "test").or_raise();
  device.fill({buffer, 0, 256}, 1).or_raise();
  const Ticket ticket = device.download({buffer, 0, 256}).or_raise();
  while (!ticket.ready()) {
  }
}

void wait_on_a_condition(Device&, const WaitSite&) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  while (true) never.wait(lock);
}

void train_blocking(WaitPlace place, PlantedWait wait) {
  TrainOptions options = tiny_options(kSteps);
  options.device = kWatched;
  RunnerBench bench(options);
  plant_wait(place, wait);
  static_cast<void>(bench.runner->run_until_blocking(kSteps, bench.stop, {}).ok());
}

class HiddenWait : public ::testing::Test {
 protected:
  // The device's own threads do not survive a fork: the test is run again in a process of its own.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using HiddenWaitDeathTest = HiddenWait;

std::string report_that_names(const std::string& wait, const std::string& caller) {
  return "deadlock: the host waits outside the ledger(.|\n)*the newest: (.|\n)*It stands "
         "in:(.|\n)*" +
         wait + "(.|\n)*" + caller;
}

TEST_F(HiddenWaitDeathTest, ASpinOnTheTimelineInTheTrainerIsADeadlockThatNamesIt) {
  EXPECT_EXIT(train_blocking(WaitPlace::Trainer, &spin_on_the_timeline),
              ::testing::ExitedWithCode(EXIT_FAILURE),
              report_that_names("spin_on_the_timeline", "Runner::"));
}

TEST_F(HiddenWaitDeathTest, ASpinOnATicketInTheTrainerIsADeadlockThatNamesIt) {
  EXPECT_EXIT(train_blocking(WaitPlace::Trainer, &spin_on_a_ticket),
              ::testing::ExitedWithCode(EXIT_FAILURE),
              report_that_names("spin_on_a_ticket", "Runner::"));
}

TEST_F(HiddenWaitDeathTest, AConditionVariableInTheFacadeIsADeadlockThatNamesIt) {
  EXPECT_EXIT(train_blocking(WaitPlace::Facade, &wait_on_a_condition),
              ::testing::ExitedWithCode(EXIT_FAILURE),
              report_that_names("wait_on_a_condition", "launch_bytes"));
}

TEST_F(HiddenWait, AnHonestRunIsNotTakenForOne) {
  TrainOptions options = tiny_options(kSteps);
  options.device = kWatched;
  RunnerBench bench(options);
  const Result<void> ran = bench.run_blocking(kSteps);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("wait 'trainer.pacing'"), std::string::npos)
      << ran.error().message;
}

}  // namespace
}  // namespace millrace::test
