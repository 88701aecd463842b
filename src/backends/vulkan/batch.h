// Batch: the commands of one submission, and the pool that batches come from.
#pragma once

#include <memory>
#include <vector>

#include "backends/vulkan/command.h"
#include "backends/vulkan/vulkan_memory.h"
#include "device/trace.h"

namespace millrace::vulkan {

/// A download whose bytes are in host-visible memory once its batch has passed.
struct Readback {
  TicketState* ticket = nullptr;  // one reference
  const std::byte* from = nullptr;
};

/// What the trace shows of a command.
struct TracedCommand {
  const char* name = nullptr;
  TraceDetails details;
};

/// Commands up to last_point of the timeline, in a command buffer. Used again, with its lists'
/// memory. Its first timestamp is that of its beginning, then one follows at the end of each traced
/// command, and one at its end.
struct Batch {
  Point last_point = 0;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  VkQueryPool timestamps = VK_NULL_HANDLE;  // null where the queue has none
  uint32_t n_timestamps = 0;
  uint64_t ticks = 0;  // block that holds the timestamps, in ticks, once the batch has passed
  std::vector<Readback> readbacks;
  std::vector<TracedCommand> traced;
};

/// Makes batches and takes them back. Not thread-safe: its queue guards it.
class BatchPool {
 public:
  explicit BatchPool(VulkanContext* context);
  ~BatchPool();
  BatchPool(const BatchPool&) = delete;
  BatchPool& operator=(const BatchPool&) = delete;

  /// Error: what the driver says.
  Result<Batch*> take();
  /// Takes back a batch that the device does not use any more; tickets not ready get no value.
  void give_back(Batch* batch);

 private:
  Result<void> fill(Batch* batch);

  VulkanContext* context_;
  uint32_t max_timestamps_;  // per batch
  VulkanMemory ticks_;
  std::vector<std::unique_ptr<Batch>> all_;
  std::vector<Batch*> free_;
};

/// Makes a batch ready for put_timestamp().
void begin_timestamps(const VulkanContext& context, Batch* batch);
/// Puts a timestamp behind all that came before it.
void put_timestamp(const VulkanContext& context, Batch* batch);
/// Has the timestamps copied to where the host sees them.
void copy_timestamps(const VulkanContext& context, Batch* batch);

}  // namespace millrace::vulkan
