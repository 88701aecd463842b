// Commands into command buffers.
#include "backends/vulkan/command.h"

#include <fmt/format.h>

namespace millrace::vulkan {
namespace {

Result<void> put_kernel(const VulkanContext& context, VulkanPipelines& pipelines,
                        const Command& command, VkCommandBuffer buffer) {
  const VulkanApi& api = context.api();
  uint64_t arguments = command.arguments - command.arguments_stride;
  bool first = true;
  for (const PlannedPass& pass : command.passes) {
    arguments += command.arguments_stride;
    if ((command.skipped >> pass.plan.pass & 1) != 0) continue;
    const uint32_t groups = pipelines.groups(pass, command.threads);
    MILLRACE_ASSIGN(const VkPipeline pipeline, pipelines.get(pass.pipeline));
    if (!first) put_barrier(context, buffer, false);
    first = false;
    api.vkCmdBindPipeline(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    api.vkCmdPushConstants(buffer, pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           sizeof(arguments), &arguments);
    api.vkCmdDispatch(buffer, groups, 1, 1);
  }
  return {};
}

}  // namespace

const char* trace_name(const Command& command) {
  switch (command.kind) {
    case Command::Kind::Kernel:
      return kernel_row(command.kernel).name;
    case Command::Kind::Upload:
      return "upload";
    case Command::Kind::Download:
      return "download";
    case Command::Kind::Copy:
      return "copy";
    case Command::Kind::Fill:
      return "fill";
  }
  return "command";
}

std::string describe(const Command& command) {
  if (command.kind != Command::Kind::Kernel) {
    return fmt::format("{} of {} bytes", trace_name(command), command.bytes);
  }
  return fmt::format("kernel {} queued at {}:{}", trace_name(command), command.site.file_name(),
                     command.site.line());
}

void put_barrier(const VulkanContext& context, VkCommandBuffer buffer, bool host) {
  constexpr VkPipelineStageFlags2 kWork =
      VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
  VkMemoryBarrier2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
  memory.srcStageMask = kWork;
  memory.srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT;
  memory.dstStageMask = kWork;
  memory.dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT;
  if (host) memory.dstStageMask |= VK_PIPELINE_STAGE_2_HOST_BIT;
  VkDependencyInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
  info.memoryBarrierCount = 1;
  info.pMemoryBarriers = &memory;
  context.api().vkCmdPipelineBarrier2(buffer, &info);
}

Result<void> put(const VulkanContext& context, VulkanPipelines& pipelines, const Command& command,
                 VkCommandBuffer buffer) {
  if (command.barrier) put_barrier(context, buffer, false);
  if (command.kind == Command::Kind::Kernel) {
    return put_kernel(context, pipelines, command, buffer);
  }
  if (command.bytes == 0) return {};
  if (command.kind == Command::Kind::Fill) {
    context.api().vkCmdFillBuffer(buffer, command.to, command.to_offset, command.bytes,
                                  command.pattern);
    return {};
  }
  const VkBufferCopy region{command.from_offset, command.to_offset, command.bytes};
  context.api().vkCmdCopyBuffer(buffer, command.from, command.to, 1, &region);
  return {};
}

}  // namespace millrace::vulkan
