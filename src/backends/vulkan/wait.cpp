// Waiting for a point of the timeline.
#include "backends/vulkan/wait.h"

namespace millrace::vulkan {

Result<void> wait_for_point_blocking(const VulkanContext& context, uint64_t point) {
  const VkSemaphore timeline = context.timeline();
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline;
  info.pValues = &point;
  MILLRACE_VULKAN_TRY(context.api().vkWaitSemaphores(context.device(), &info, UINT64_MAX),
                      "vkWaitSemaphores");
  return {};
}

}  // namespace millrace::vulkan
