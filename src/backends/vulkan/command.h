// Command: one piece of recorded work, and how it goes into a command buffer.
#pragma once

#include <span>

#include "backends/vulkan/vulkan_pipelines.h"
#include "device/device.h"
#include "device/ticket_pool.h"

namespace millrace::vulkan {

struct Command {
  enum class Kind : uint8_t { Kernel, Upload, Download, Copy, Fill };
  Kind kind = Kind::Kernel;
  bool barrier = false;  // before it
  // Kernel: its passes, and the device address of the first one's argument block.
  KernelId kernel = {};
  std::span<const PlannedPass> passes = {};
  uint64_t skipped = 0;  // a bit for each pass that the parameters leave out
  uint64_t threads = 0;
  uint64_t arguments = 0;
  uint64_t arguments_stride = 0;
  SourceLocation site = {};
  // The others; nothing is done for 0 bytes.
  VkBuffer to = VK_NULL_HANDLE;
  VkBuffer from = VK_NULL_HANDLE;
  uint64_t to_offset = 0;
  uint64_t from_offset = 0;
  uint64_t bytes = 0;
  uint32_t pattern = 0;           // Fill
  TicketState* ticket = nullptr;  // Download: one reference, which the queue takes over
  const std::byte* landing = nullptr;
};

/// "kernel add_u32 queued at src/a.cpp:7", "copy of 16 bytes".
std::string describe(const Command& command);
/// What the trace calls it.
const char* trace_name(const Command& command);

/// Puts `command` into `buffer`, with its barrier. Error: a pipeline that could not be made.
Result<void> put(const VulkanContext& context, VulkanPipelines& pipelines, const Command& command,
                 VkCommandBuffer buffer);
/// Orders all that comes after behind all that came before; with `host`, for the host's eyes too.
void put_barrier(const VulkanContext& context, VkCommandBuffer buffer, bool host);

}  // namespace millrace::vulkan
