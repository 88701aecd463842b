// The one place where the Vulkan library may stop a thread.
#pragma once

#include "backends/vulkan/vulkan_context.h"

namespace millrace::vulkan {

/// How a command buffer copies timestamps: in its place in the queue, where it is the device that
/// waits for them. Asking for them from the host may stop it: lavapipe 22.3 then waits for all work
/// that it was ever given.
constexpr VkQueryResultFlags kQueuedTimestamps = VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT;

/// Stops the calling thread, which is not the host's, until the device has passed `point`. Error:
/// DeviceLost.
Result<void> wait_for_point_blocking(const VulkanContext& context, uint64_t point);

}  // namespace millrace::vulkan
