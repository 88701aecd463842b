// Devices that run nothing until told: what the scenarios about waits are held against.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "device/device_helpers.h"
#include "simulated/simulated_device.h"

namespace millrace::testing {

/// A device that does nothing by itself. On the simulated one that stalls, a hidden wait is an
/// error.
struct HeldDevice {
  const char* name;
  const char* id;
};
inline constexpr HeldDevice kHeldDevices[] = {
#ifdef MILLRACE_TEST_VULKAN
    // The driver has the work and stands still before a semaphore. Not under validation: layers of
    // before 2024 take a semaphore's earlier host signals for pending ones.
    {"VulkanHeld", "vulkan:0,lazy"},
#else
    {"CpuLazy", "cpu:2,lazy"},
    {"SimulatedStalled", "simulated:stall,host,ranges"},
    // Poison queues work of its own on blocks in use, which can hide what is wrong without it.
    {"SimulatedPoisoned", "simulated:stall,checks"},
#endif
};

/// Lets everything queued run. The one place where a scenario waits.
inline void run_everything_blocking(Device& device) {
  if (device.info().id == "simulated") simulated::newest_control().run_all();
  device.wait_blocking(device.submit(), {WaitReason::Test, "test.release"}).or_raise();
}

/// Lets the oldest `n` commands run, on devices whose every command is a point.
inline void run_commands_blocking(Device& device, uint64_t n) {
  const Point target = device.poll() + n;
  if (device.info().id == "simulated") simulated::newest_control().run(n);
  device.wait_blocking(target, {WaitReason::Test, "test.release"}).or_raise();
}

/// A scenario on a device that stands still, behind the argument checks.
class HeldScenario : public ::testing::TestWithParam<HeldDevice> {
 protected:
  void SetUp() override { open(""); }
  void TearDown() override {
    if (device == nullptr) return;
    run_everything_blocking(*device);
    if (device->info().id != "simulated") return;
    for (const std::string& problem : simulated::newest_control().problems()) {
      ADD_FAILURE() << problem;
    }
  }

  /// Opens the device anew with more fields after its id, such as ",staging=4096".
  void open(const std::string& fields) {
    device = nullptr;
    device = make_checked(open_or_die(GetParam().id + fields));
  }
  BufferId buffer(uint64_t bytes, const char* label = "test") {
    return device->allocate(bytes, label).or_raise();
  }
  /// A buffer that holds `values` and that no queued work uses.
  BufferId settled(const std::vector<uint32_t>& values, const char* label = "test") {
    const BufferId id = buffer(4 * values.size(), label);
    device->upload(whole(id, 4 * values.size()), bytes_of(values)).or_raise();
    return id;
  }
  /// Waits that the host made so far, for whatever reason.
  uint64_t n_waits() {
    uint64_t n = 0;
    for (const WaitRecord& record : device->ledger().records()) n += record.count;
    return n;
  }
  std::vector<uint32_t> read_after_all(BufferId id, uint64_t bytes) {
    const Ticket ticket = device->download(whole(id, bytes)).or_raise();
    run_everything_blocking(*device);
    return values_of(ticket);
  }

  std::unique_ptr<Device> device;
};

#define MILLRACE_ON_HELD_DEVICES(suite)                                  \
  INSTANTIATE_TEST_SUITE_P(On, suite, ::testing::ValuesIn(kHeldDevices), \
                           [](const auto& info) { return std::string(info.param.name); })

}  // namespace millrace::testing
