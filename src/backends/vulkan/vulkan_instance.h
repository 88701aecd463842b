// VulkanInstance: the connection to the Vulkan library, and what its validation layer says.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "backends/vulkan/vulkan_api.h"

namespace millrace::vulkan {

/// What the validation layer said. Thread-safe.
class ValidationLog {
 public:
  void add(const std::string& message);
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  /// "3 messages of the validation layer, the first: ...".
  std::string text() const;

 private:
  std::atomic<uint64_t> count_ = 0;
  mutable std::mutex mutex_;
  std::string first_;
};

class VulkanInstance {
 public:
  /// With `validate`, under the validation layer with its synchronisation checks. Errors: Usage
  /// without a library, a driver or the layer.
  static Result<std::unique_ptr<VulkanInstance>> open(bool validate);
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;

  const VulkanApi& api() const { return api_; }
  VkInstance handle() const { return instance_; }
  /// Null without validation.
  const ValidationLog* validation() const { return log_.get(); }

 private:
  explicit VulkanInstance(const VulkanApi& api) : api_(api) {}
  Result<void> create(bool validate);
  Result<void> find_layer() const;

  VulkanApi api_;
  std::unique_ptr<ValidationLog> log_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace millrace::vulkan
