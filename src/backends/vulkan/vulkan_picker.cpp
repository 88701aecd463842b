// What a Vulkan device must be able to do, and the order of those that can.
#include "backends/vulkan/vulkan_picker.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernels/gpu_code.h"
#include "kernels/gpu_plan.h"

namespace millrace::vulkan {
namespace {

int rank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 4;
    default:
      return 3;
  }
}

/// The first feature that the device lacks, or null.
const char* missing_feature(const VulkanApi& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceVulkan13Features v13{};
  v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  VkPhysicalDeviceVulkan12Features v12{};
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  v12.pNext = &v13;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &v12;
  api.vkGetPhysicalDeviceFeatures2(physical, &features);
  if (v12.timelineSemaphore == VK_FALSE) return "timelineSemaphore";
  if (v12.bufferDeviceAddress == VK_FALSE) return "bufferDeviceAddress";
  if (v12.scalarBlockLayout == VK_FALSE) return "scalarBlockLayout";
  if (v13.synchronization2 == VK_FALSE) return "synchronization2";
  return nullptr;
}

bool has_bytes(const VulkanApi& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceVulkan12Features v12{};
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &v12;
  api.vkGetPhysicalDeviceFeatures2(physical, &features);
  return v12.shaderInt8 == VK_TRUE && v12.storageBuffer8BitAccess == VK_TRUE;
}

/// A queue family with compute; one without graphics where there is a choice, since the desktop
/// uses the other.
std::optional<uint32_t> compute_family(const VulkanApi& api, VkPhysicalDevice physical,
                                       uint32_t* timestamp_bits) {
  uint32_t n = 0;
  api.vkGetPhysicalDeviceQueueFamilyProperties(physical, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  api.vkGetPhysicalDeviceQueueFamilyProperties(physical, &n, families.data());
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < n; ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if ((flags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    const bool graphics = (flags & VK_QUEUE_GRAPHICS_BIT) != 0;
    if (best && graphics) continue;
    best = i;
    *timestamp_bits = families[i].timestampValidBits;
    if (!graphics) break;
  }
  return best;
}

uint64_t device_memory_bytes(const VulkanApi& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceMemoryProperties memory{};
  api.vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) bytes = std::max(bytes, heap.size);
  }
  return bytes;
}

/// The candidate, or why there is none.
Result<Candidate> look_at(const VulkanApi& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties first{};
  api.vkGetPhysicalDeviceProperties(physical, &first);
  const uint32_t version = first.apiVersion;
  const auto refuse = [&first](const std::string& why) {
    return Error{ErrorCode::Usage, fmt::format("{} {}", first.deviceName, why)};
  };
  if (version < VK_API_VERSION_1_3) {
    return refuse(fmt::format("has Vulkan {}.{} (1.3 is needed)", VK_API_VERSION_MAJOR(version),
                              VK_API_VERSION_MINOR(version)));
  }
  if (const char* feature = missing_feature(api, physical)) {
    return refuse(fmt::format("lacks {}", feature));
  }
  Candidate candidate{.physical = physical, .type = first.deviceType};
  const auto family = compute_family(api, physical, &candidate.timestamp_bits);
  if (!family) return refuse("has no compute queue");
  candidate.queue_family = *family;

  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &driver;
  api.vkGetPhysicalDeviceProperties2(physical, &properties);
  candidate.info.name = properties.properties.deviceName;
  candidate.info.driver = fmt::format("{} {}, Vulkan {}.{}", driver.driverName, driver.driverInfo,
                                      VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
  candidate.info.memory_bytes = device_memory_bytes(api, physical);
  candidate.has_bytes = has_bytes(api, physical);
  candidate.info.partial = !gpu_plan_is_complete() || gpu_entries().empty();
  candidate.info.software = first.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  return candidate;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

}  // namespace

Result<Candidates> find_candidates(const VulkanInstance& instance) {
  const VulkanApi& api = instance.api();
  uint32_t n = 0;
  MILLRACE_VULKAN_TRY(api.vkEnumeratePhysicalDevices(instance.handle(), &n, nullptr),
                      "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> devices(n);
  MILLRACE_VULKAN_TRY(api.vkEnumeratePhysicalDevices(instance.handle(), &n, devices.data()),
                      "vkEnumeratePhysicalDevices");
  Candidates candidates;
  for (uint32_t i = 0; i < n; ++i) {
    auto candidate = look_at(api, devices[i]);
    if (candidate.ok()) {
      candidates.usable.push_back(std::move(candidate).value());
    } else {
      candidates.refused.push_back(candidate.error().message);
    }
  }
  std::stable_sort(
      candidates.usable.begin(), candidates.usable.end(),
      [](const Candidate& a, const Candidate& b) { return rank(a.type) < rank(b.type); });
  for (size_t i = 0; i < candidates.usable.size(); ++i) {
    candidates.usable[i].info.id = fmt::format("vulkan:{}", i);
  }
  return candidates;
}

Result<Candidate> pick(const Candidates& candidates, int index) {
  const auto& usable = candidates.usable;
  if (index >= 0 && static_cast<size_t>(index) < usable.size()) return usable[index];
  std::vector<std::string> names;
  names.reserve(usable.size());
  for (const Candidate& candidate : usable) {
    names.push_back(fmt::format("{} ({})", candidate.info.id, candidate.info.name));
  }
  std::string message = names.empty() ? "there is no Vulkan device that Millrace can use"
                                      : fmt::format("there is no device vulkan:{}; there are {}",
                                                    index, joined(names));
  if (!candidates.refused.empty()) message += "; not usable: " + joined(candidates.refused);
  return Error{ErrorCode::Usage, message};
}

}  // namespace millrace::vulkan
