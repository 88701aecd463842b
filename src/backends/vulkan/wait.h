// The one place where the Vulkan library may stop a thread.
#pragma once

#include "backends/vulkan/vulkan_context.h"

namespace millrace::vulkan {

/// Stops the calling thread, which is not the host's, until the device has passed `point`. Error:
/// DeviceLost.
Result<void> wait_for_point_blocking(const VulkanContext& context, uint64_t point);

}  // namespace millrace::vulkan
