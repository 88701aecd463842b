// Opening of the Vulkan library, with or without its validation layer.
#include "backends/vulkan/vulkan_instance.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace millrace::vulkan {
namespace {

constexpr const char* kLayer = "VK_LAYER_KHRONOS_validation";

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT /*severity*/,
                                          VkDebugUtilsMessageTypeFlagsEXT /*types*/,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data,
                                          void* log) {
  static_cast<ValidationLog*>(log)->add(data->pMessage);
  return VK_FALSE;
}

/// General messages are the loader's own, about the environment; they are left out.
VkDebugUtilsMessengerCreateInfoEXT messenger_info(ValidationLog* log) {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = &on_message;
  info.pUserData = log;
  return info;
}

}  // namespace

void ValidationLog::add(const std::string& message) {
  spdlog::error("vulkan validation: {}", message);
  std::lock_guard lock(mutex_);
  if (count_ == 0) first_ = message;
  count_.fetch_add(1, std::memory_order_release);
}

std::string ValidationLog::text() const {
  std::lock_guard lock(mutex_);
  return fmt::format("{} messages of the validation layer, the first: {}", count_.load(), first_);
}

// The loader lets go of drivers with their last instance, and some can be loaded a few times only.
// One instance, never destroyed, keeps them.
static void keep_drivers_loaded(const VulkanApi& api) {
  static const VkInstance kKept = [&api] {
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    VkInstance made = VK_NULL_HANDLE;
    // Where none can be made, the next one fails as well and says why.
    return api.vkCreateInstance(&info, nullptr, &made) == VK_SUCCESS ? made : VK_NULL_HANDLE;
  }();
  if (kKept == VK_NULL_HANDLE) spdlog::debug("vulkan: no driver answers");
}

Result<std::unique_ptr<VulkanInstance>> VulkanInstance::open(bool validate) {
  MILLRACE_ASSIGN(const VulkanApi api, VulkanApi::open());
  keep_drivers_loaded(api);
  std::unique_ptr<VulkanInstance> instance(new VulkanInstance(api));
  MILLRACE_TRY(instance->create(validate));
  return instance;
}

Result<void> VulkanInstance::find_layer() const {
  uint32_t n = 0;
  MILLRACE_VULKAN_TRY(api_.vkEnumerateInstanceLayerProperties(&n, nullptr),
                      "vkEnumerateInstanceLayerProperties");
  std::vector<VkLayerProperties> layers(n);
  MILLRACE_VULKAN_TRY(api_.vkEnumerateInstanceLayerProperties(&n, layers.data()),
                      "vkEnumerateInstanceLayerProperties");
  const bool found = std::any_of(layers.begin(), layers.end(), [](const VkLayerProperties& layer) {
    return std::string_view(layer.layerName) == kLayer;
  });
  if (found) return {};
  return Error{ErrorCode::Usage,
               fmt::format("'validate' needs the Vulkan validation layer ({}), which is not "
                           "installed (Debian: vulkan-validationlayers)",
                           kLayer)};
}

Result<void> VulkanInstance::create(bool validate) {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "millrace";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;

  const VkValidationFeatureEnableEXT enabled =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{};
  VkDebugUtilsMessengerCreateInfoEXT messenger{};
  const char* const extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  if (validate) {
    MILLRACE_TRY(find_layer());
    log_ = std::make_unique<ValidationLog>();
    messenger = messenger_info(log_.get());
    features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
    features.enabledValidationFeatureCount = 1;
    features.pEnabledValidationFeatures = &enabled;
    // Chained here the messenger sees the instance's own making and end too.
    features.pNext = &messenger;
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kLayer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
  }
  const VkResult created = api_.vkCreateInstance(&info, nullptr, &instance_);
  if (created != VK_SUCCESS) {
    return Error{ErrorCode::Usage, fmt::format("no Vulkan driver answers: vkCreateInstance gave {}",
                                               name_of(created))};
  }
  MILLRACE_TRY(api_.load_instance(instance_));
  if (!validate) return {};
  messenger.pNext = nullptr;
  MILLRACE_VULKAN_TRY(
      api_.vkCreateDebugUtilsMessengerEXT(instance_, &messenger, nullptr, &messenger_),
      "vkCreateDebugUtilsMessengerEXT");
  return {};
}

VulkanInstance::~VulkanInstance() {
  if (messenger_ != VK_NULL_HANDLE) {
    api_.vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  }
  if (instance_ != VK_NULL_HANDLE && api_.vkDestroyInstance != nullptr) {
    api_.vkDestroyInstance(instance_, nullptr);
  }
}

}  // namespace millrace::vulkan
