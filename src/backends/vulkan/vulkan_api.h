// The Vulkan library: opened at run time, with the table of its functions.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <string>

#include "base/result.h"

namespace millrace::vulkan {

/// The functions of vulkan_functions.inc; those of an instance or a device are null until it is
/// there.
struct VulkanApi {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
#define MILLRACE_VULKAN_GLOBAL(name) PFN_##name name = nullptr;
#define MILLRACE_VULKAN_INSTANCE(name) PFN_##name name = nullptr;
#define MILLRACE_VULKAN_DEBUG(name) PFN_##name name = nullptr;
#define MILLRACE_VULKAN_DEVICE(name) PFN_##name name = nullptr;
#include "backends/vulkan/vulkan_functions.inc"
#undef MILLRACE_VULKAN_GLOBAL
#undef MILLRACE_VULKAN_INSTANCE
#undef MILLRACE_VULKAN_DEBUG
#undef MILLRACE_VULKAN_DEVICE

  /// Opens the loader library, the first time for good, and finds the global functions.
  /// MILLRACE_VULKAN_LIBRARY names another file than the system's. Error: Usage.
  static Result<VulkanApi> open();
  /// Errors of these: Usage, with the name of the function that is missing.
  Result<void> load_instance(VkInstance instance);
  Result<void> load_device(VkDevice device);
};

/// "VK_ERROR_DEVICE_LOST", or the number of a result without a name here.
std::string name_of(VkResult result);
/// The error that `call` gave: OutOfMemory, DeviceLost or Internal.
Error error_of(VkResult result, const char* call);

/// Returns from the enclosing function when `expression` (a VkResult) is an error.
#define MILLRACE_VULKAN_TRY(expression, call)                                      \
  do {                                                                             \
    const VkResult millrace_vulkan_result = (expression);                          \
    if (millrace_vulkan_result < 0) return error_of(millrace_vulkan_result, call); \
  } while (false)

}  // namespace millrace::vulkan
