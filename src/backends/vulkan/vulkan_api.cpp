// Loading of the Vulkan library, and the names of its results.
#include "backends/vulkan/vulkan_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

namespace millrace::vulkan {
namespace {

Error missing(const char* function) {
  return {ErrorCode::Usage, fmt::format("the Vulkan library or driver has no {}: it is too old "
                                        "(1.3 is needed)",
                                        function)};
}

/// The library is never closed: drivers leave threads and exit handlers behind.
void* open_library() {
  const char* const other = std::getenv("MILLRACE_VULKAN_LIBRARY");
  if (other != nullptr) return dlopen(other, RTLD_NOW | RTLD_LOCAL);
  for (const char* name : {"libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

}  // namespace

Result<VulkanApi> VulkanApi::open() {
  static void* const kLibrary = open_library();
  if (kLibrary == nullptr) {
    return Error{ErrorCode::Usage, "there is no Vulkan library (libvulkan.so.1) on this machine"};
  }
  VulkanApi api;
  api.vkGetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(kLibrary, "vkGetInstanceProcAddr"));
  if (api.vkGetInstanceProcAddr == nullptr) return missing("vkGetInstanceProcAddr");
#define MILLRACE_VULKAN_GLOBAL(name)                                                         \
  api.name = reinterpret_cast<PFN_##name>(api.vkGetInstanceProcAddr(VK_NULL_HANDLE, #name)); \
  if (api.name == nullptr) return missing(#name);
#define MILLRACE_VULKAN_INSTANCE(name)
#define MILLRACE_VULKAN_DEBUG(name)
#define MILLRACE_VULKAN_DEVICE(name)
#include "backends/vulkan/vulkan_functions.inc"
#undef MILLRACE_VULKAN_GLOBAL
#undef MILLRACE_VULKAN_INSTANCE
#undef MILLRACE_VULKAN_DEBUG
#undef MILLRACE_VULKAN_DEVICE
  return api;
}

Result<void> VulkanApi::load_instance(VkInstance instance) {
#define MILLRACE_VULKAN_GLOBAL(name)
#define MILLRACE_VULKAN_INSTANCE(name)                                         \
  name = reinterpret_cast<PFN_##name>(vkGetInstanceProcAddr(instance, #name)); \
  if (name == nullptr) return missing(#name);
#define MILLRACE_VULKAN_DEBUG(name) \
  name = reinterpret_cast<PFN_##name>(vkGetInstanceProcAddr(instance, #name));
#define MILLRACE_VULKAN_DEVICE(name)
#include "backends/vulkan/vulkan_functions.inc"
#undef MILLRACE_VULKAN_GLOBAL
#undef MILLRACE_VULKAN_INSTANCE
#undef MILLRACE_VULKAN_DEBUG
#undef MILLRACE_VULKAN_DEVICE
  return {};
}

Result<void> VulkanApi::load_device(VkDevice device) {
#define MILLRACE_VULKAN_GLOBAL(name)
#define MILLRACE_VULKAN_INSTANCE(name)
#define MILLRACE_VULKAN_DEBUG(name)
#define MILLRACE_VULKAN_DEVICE(name)                                       \
  name = reinterpret_cast<PFN_##name>(vkGetDeviceProcAddr(device, #name)); \
  if (name == nullptr) return missing(#name);
#include "backends/vulkan/vulkan_functions.inc"
#undef MILLRACE_VULKAN_GLOBAL
#undef MILLRACE_VULKAN_INSTANCE
#undef MILLRACE_VULKAN_DEBUG
#undef MILLRACE_VULKAN_DEVICE
  return {};
}

std::string name_of(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return "VK_SUCCESS";
    case VK_TIMEOUT:
      return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "VK_ERROR_TOO_MANY_OBJECTS";
    default:
      return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

Error error_of(VkResult result, const char* call) {
  ErrorCode code = ErrorCode::Internal;
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      result == VK_ERROR_TOO_MANY_OBJECTS) {
    code = ErrorCode::OutOfMemory;
  } else if (result == VK_ERROR_DEVICE_LOST) {
    code = ErrorCode::DeviceLost;
  }
  return {code, fmt::format("{} gave {}", call, name_of(result))};
}

}  // namespace millrace::vulkan
