// The choice of a Vulkan device: which ones can run the kernels, best first.
#pragma once

#include <string>
#include <vector>

#include "backends/vulkan/vulkan_instance.h"
#include "device/device.h"

namespace millrace::vulkan {

/// A device that can be used, with what is needed to open it.
struct Candidate {
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  uint32_t queue_family = 0;
  bool has_bytes = false;       // 8-bit integers in memory: tensors of bytes are computed with
  uint32_t timestamp_bits = 0;  // 0: no timestamps
  DeviceInfo info = {};         // id "vulkan:<place in the list>"
};

/// The devices that can be used, best first: discrete, integrated, virtual, other, software; and
/// for each of the others why it cannot be.
struct Candidates {
  std::vector<Candidate> usable;
  std::vector<std::string> refused;
};

/// Errors: what the library says.
Result<Candidates> find_candidates(const VulkanInstance& instance);
/// The candidate at `index`. Error: Usage, with the devices there are and why others are refused.
Result<Candidate> pick(const Candidates& candidates, int index);

}  // namespace millrace::vulkan
