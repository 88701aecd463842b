// Test hooks: the places where a test may plant a hidden wait, to prove that the budgets find it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "device/device.h"

namespace millrace {

/// One place in each part of the program that a step passes.
enum class WaitPlace : uint8_t { Trainer, Facade, Backend };
constexpr int kWaitPlaceCount = 3;

/// What a test plants: stops this thread through `device`, as `site`.
using PlantedWait = void (*)(Device& device, const WaitSite& site);

namespace detail {
inline std::array<std::atomic<PlantedWait>, kWaitPlaceCount> planted_waits{};
inline constexpr const char* kPlantedNames[kWaitPlaceCount] = {"planted.trainer", "planted.facade",
                                                               "planted.backend"};
}  // namespace detail

/// Tests only: every pass of `place` calls `wait` from now on; nullptr takes it away again.
inline void plant_wait(WaitPlace place, PlantedWait wait) {
  detail::planted_waits[static_cast<size_t>(place)].store(wait, std::memory_order_relaxed);
}

/// Marks a place. Costs one relaxed load where no test planted anything.
inline void pass_wait_place(WaitPlace place, Device& device,
                            SourceLocation where = SourceLocation::current()) {
  const auto index = static_cast<size_t>(place);
  const PlantedWait wait = detail::planted_waits[index].load(std::memory_order_relaxed);
  if (wait != nullptr) wait(device, {WaitReason::UserRead, detail::kPlantedNames[index], where});
}

}  // namespace millrace
