// A random program of uploads, fills, copies, kernels, snapshots, releases and allocations gives
// the same values on every device and clock as when each command runs at once on the host (I2, I6,
// I7).
#include "device/held_device.h"
#include "device/random_program.h"

namespace millrace::testing {
namespace {

class RandomOrder : public ::testing::TestWithParam<HeldDevice> {};
#ifdef MILLRACE_TEST_VULKAN
INSTANTIATE_TEST_SUITE_P(
    On, RandomOrder,
    ::testing::Values(HeldDevice{"Vulkan", "vulkan:0,validate,staging=4096"},
                      HeldDevice{"VulkanHeld", "vulkan:0,lazy,staging=4096"},
                      HeldDevice{"VulkanUnmapped", "vulkan:0,validate,unmapped,staging=4096"},
                      HeldDevice{"VulkanShortBatches", "vulkan:0,unmapped,batch=3,staging=4096"}),
    [](const auto& info) { return std::string(info.param.name); });
#else
INSTANTIATE_TEST_SUITE_P(
    On, RandomOrder,
    ::testing::Values(HeldDevice{"Cpu", "cpu:2,staging=4096"},
                      HeldDevice{"CpuLazy", "cpu:2,lazy,staging=4096"},
                      HeldDevice{"SimulatedHeld", "simulated:hold,checks,staging=4096"},
                      HeldDevice{"SimulatedStalled", "simulated:stall,host,staging=4096"},
                      HeldDevice{"SimulatedLag2", "simulated:lag=2,checks,staging=4096"},
                      HeldDevice{"SimulatedRandom1", "simulated:random=1,checks,staging=4096"},
                      HeldDevice{"SimulatedRandom2", "simulated:random=2,host,staging=4096"},
                      HeldDevice{"SimulatedAtOnce", "simulated:immediate,checks,staging=4096"}),
    [](const auto& info) { return std::string(info.param.name); });
#endif

TEST_P(RandomOrder, ProgramsGiveEverySnapshotItsValueAtItsPlaceInTheQueueAndNeverWait) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto device = make_checked(open_or_die(GetParam().id));
    RandomProgram program(*device, seed);
    program.run();
    program.snapshot_all();
    EXPECT_TRUE(device->ledger().records().empty());
    run_everything_blocking(*device);
    program.check();
    if (HasFatalFailure()) return;
    if (device->info().id == "simulated") {
      EXPECT_EQ(simulated::newest_control().problems(), std::vector<std::string>());
    }
  }
}

}  // namespace
}  // namespace millrace::testing
