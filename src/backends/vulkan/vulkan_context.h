// VulkanContext: an opened device with its queue, its limits, its kinds of memory and its timeline.
#pragma once

#include <atomic>
#include <memory>

#include "backends/vulkan/vulkan_options.h"
#include "backends/vulkan/vulkan_picker.h"

namespace millrace::vulkan {

/// What memory is for.
enum class MemoryUse : uint8_t {
  Buffers,    // of tensors
  Uploads,    // written by the host, copied from by the device
  Downloads,  // copied to by the device, read by the host
  Arguments,  // written by the host, read by kernels
};

/// A kind of memory, and what the host may do with it.
struct MemoryKind {
  uint32_t type = 0;    // index among the device's memory types
  bool mapped = false;  // the host may write it; coherent
  bool cached = false;  // and read it as fast as its own
};

class VulkanContext {
 public:
  /// Errors: Usage without such a device; what the driver says.
  static Result<std::unique_ptr<VulkanContext>> open(const VulkanOptions& options);
  ~VulkanContext();
  VulkanContext(const VulkanContext&) = delete;
  VulkanContext& operator=(const VulkanContext&) = delete;

  const VulkanApi& api() const { return api_; }
  VkDevice device() const { return device_; }
  VkQueue queue() const { return queue_; }
  const Candidate& candidate() const { return candidate_; }
  const DeviceInfo& info() const { return candidate_.info; }
  bool has_bytes() const { return candidate_.has_bytes; }
  const VulkanOptions& options() const { return options_; }
  /// Null without validation.
  const ValidationLog* validation() const { return instance_->validation(); }

  MemoryKind memory_kind(MemoryUse use) const;
  uint64_t max_allocation_bytes() const { return max_allocation_bytes_; }
  uint64_t max_buffer_bytes() const { return max_buffer_bytes_; }
  uint32_t max_allocations() const { return limits_.maxMemoryAllocationCount; }
  uint32_t max_groups() const { return limits_.maxComputeWorkGroupCount[0]; }
  /// Nanoseconds per tick of a timestamp; 0 if the queue has none.
  double ns_per_tick() const { return ns_per_tick_; }
  /// Allocations alive; for max_allocations().
  std::atomic<uint32_t>& n_allocations() { return n_allocations_; }

  /// Counts passed points.
  VkSemaphore timeline() const { return timeline_; }
  /// What held work waits for: the point up to which it may run. Null unless lazy.
  VkSemaphore gate() const { return gate_; }
  /// The points that have passed. Error: DeviceLost.
  Result<uint64_t> passed() const;

 private:
  VulkanContext(const VulkanOptions& options, std::unique_ptr<VulkanInstance> instance,
                Candidate candidate);
  Result<void> create_device();
  void read_limits();
  Result<VkSemaphore> create_timeline() const;

  VulkanOptions options_;
  std::unique_ptr<VulkanInstance> instance_;
  VulkanApi api_;
  Candidate candidate_;
  VkPhysicalDeviceLimits limits_{};
  VkPhysicalDeviceMemoryProperties memory_{};
  uint64_t max_allocation_bytes_ = 0;
  uint64_t max_buffer_bytes_ = 0;
  double ns_per_tick_ = 0;
  std::atomic<uint32_t> n_allocations_ = 0;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  VkSemaphore gate_ = VK_NULL_HANDLE;
};

}  // namespace millrace::vulkan
