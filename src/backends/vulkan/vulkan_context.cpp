// Opening of a device with the features that are needed and no more.
#include "backends/vulkan/vulkan_context.h"

#include <spdlog/spdlog.h>

#include <array>
#include <initializer_list>

namespace millrace::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kMapped =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = kMapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
// Memory with effects of its own (protected, lazily allocated, device-coherent for debugging).
constexpr VkMemoryPropertyFlags kPlain = kLocal | kCached;

}  // namespace

VulkanContext::VulkanContext(const VulkanOptions& options, std::unique_ptr<VulkanInstance> instance,
                             Candidate candidate)
    : options_(options),
      instance_(std::move(instance)),
      api_(instance_->api()),
      candidate_(std::move(candidate)) {}

Result<std::unique_ptr<VulkanContext>> VulkanContext::open(const VulkanOptions& options) {
  MILLRACE_ASSIGN(auto instance, VulkanInstance::open(options.validate));
  MILLRACE_ASSIGN(const Candidates candidates, find_candidates(*instance));
  MILLRACE_ASSIGN(Candidate candidate, pick(candidates, options.index));
  std::unique_ptr<VulkanContext> context(
      new VulkanContext(options, std::move(instance), std::move(candidate)));
  context->read_limits();
  MILLRACE_TRY(context->create_device());
  MILLRACE_ASSIGN(context->timeline_, context->create_timeline());
  if (options.lazy) {
    MILLRACE_ASSIGN(context->gate_, context->create_timeline());
  }
  return context;
}

void VulkanContext::read_limits() {
  VkPhysicalDeviceMaintenance4Properties maintenance4{};
  maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES;
  VkPhysicalDeviceMaintenance3Properties maintenance3{};
  maintenance3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  maintenance3.pNext = &maintenance4;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &maintenance3;
  api_.vkGetPhysicalDeviceProperties2(candidate_.physical, &properties);
  limits_ = properties.properties.limits;
  max_allocation_bytes_ = maintenance3.maxMemoryAllocationSize;
  max_buffer_bytes_ = maintenance4.maxBufferSize;
  // A device that is held back would keep drivers waiting that give timestamps when all is done.
  const bool timed = candidate_.timestamp_bits > 0 && !options_.lazy;
  if (timed) ns_per_tick_ = limits_.timestampPeriod;
  api_.vkGetPhysicalDeviceMemoryProperties(candidate_.physical, &memory_);
}

Result<void> VulkanContext::create_device() {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = candidate_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan13Features v13{};
  v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  v13.synchronization2 = VK_TRUE;
  VkPhysicalDeviceVulkan12Features v12{};
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  v12.pNext = &v13;
  v12.timelineSemaphore = VK_TRUE;
  v12.bufferDeviceAddress = VK_TRUE;
  v12.scalarBlockLayout = VK_TRUE;
  v12.shaderInt8 = candidate_.has_bytes ? VK_TRUE : VK_FALSE;
  v12.storageBuffer8BitAccess = v12.shaderInt8;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &v12;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  MILLRACE_VULKAN_TRY(api_.vkCreateDevice(candidate_.physical, &info, nullptr, &device_),
                      "vkCreateDevice");
  MILLRACE_TRY(api_.load_device(device_));
  api_.vkGetDeviceQueue(device_, candidate_.queue_family, 0, &queue_);
  return {};
}

Result<VkSemaphore> VulkanContext::create_timeline() const {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  MILLRACE_VULKAN_TRY(api_.vkCreateSemaphore(device_, &info, nullptr, &semaphore),
                      "vkCreateSemaphore");
  return semaphore;
}

VulkanContext::~VulkanContext() {
  if (device_ == VK_NULL_HANDLE || api_.vkDestroyDevice == nullptr) return;
  api_.vkDestroySemaphore(device_, timeline_, nullptr);
  api_.vkDestroySemaphore(device_, gate_, nullptr);
  api_.vkDestroyDevice(device_, nullptr);
}

Result<uint64_t> VulkanContext::passed() const {
  uint64_t value = 0;
  MILLRACE_VULKAN_TRY(api_.vkGetSemaphoreCounterValue(device_, timeline_, &value),
                      "vkGetSemaphoreCounterValue");
  return value;
}

MemoryKind VulkanContext::memory_kind(MemoryUse use) const {
  struct Wish {
    VkMemoryPropertyFlags with, without;
  };
  // Best first; the last one of each row exists on every device.
  constexpr Wish kSharedBuffers[] = {{kLocal | kCached, 0}, {kLocal | kMapped, 0}, {kLocal, 0}};
  constexpr Wish kBuffers[] = {{kLocal, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT}, {kLocal, 0}, {0, 0}};
  constexpr Wish kUploads[] = {{kMapped, kLocal}, {kMapped, 0}, {kMapped, 0}};
  constexpr Wish kDownloads[] = {{kCached, kLocal}, {kCached, 0}, {kMapped, 0}};
  // Kernels begin with their arguments, which should not be across a bus.
  constexpr Wish kArguments[] = {{kLocal | kMapped, 0}, {kMapped, 0}, {kMapped, 0}};
  // On devices that share the host's memory there is one copy of everything.
  const bool shared = candidate_.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                      candidate_.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const Wish* wishes = kArguments;
  if (use == MemoryUse::Buffers) wishes = shared ? kSharedBuffers : kBuffers;
  if (use == MemoryUse::Uploads) wishes = kUploads;
  if (use == MemoryUse::Downloads) wishes = kDownloads;
  for (size_t i = 0; i < std::size(kArguments); ++i) {
    for (uint32_t type = 0; type < memory_.memoryTypeCount; ++type) {
      const VkMemoryPropertyFlags flags = memory_.memoryTypes[type].propertyFlags;
      if ((flags & ~kPlain) != 0 || (flags & wishes[i].with) != wishes[i].with ||
          (flags & wishes[i].without) != 0) {
        continue;
      }
      const bool hidden = use == MemoryUse::Buffers && options_.unmapped;
      return {.type = type,
              .mapped = (flags & kMapped) == kMapped && !hidden,
              .cached = (flags & kCached) == kCached && !hidden};
    }
  }
  spdlog::error("{}: the driver offers no plain memory for use {}", candidate_.info.id,
                static_cast<int>(use));
  return {};
}

}  // namespace millrace::vulkan
