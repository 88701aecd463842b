// The making of batches.
#include "backends/vulkan/batch.h"

#include "backends/vulkan/wait.h"

namespace millrace::vulkan {
namespace {

// Tickets that a batch has room for at once, so that its list does not grow in some later step.
constexpr size_t kReadbackRoom = 8;
constexpr uint64_t kTicksSlab = uint64_t{64} << 10;

uint32_t most_timestamps(const VulkanContext& context) {
  return context.options().commands_per_batch + 2;
}
uint64_t ticks_bytes(uint32_t n) { return BlockPool::block_bytes(n * sizeof(uint64_t)); }

}  // namespace

BatchPool::BatchPool(VulkanContext* context)
    : context_(context),
      max_timestamps_(most_timestamps(*context)),
      ticks_(context, MemoryUse::Downloads, kTicksSlab) {}

BatchPool::~BatchPool() {
  const VulkanApi& api = context_->api();
  for (const auto& batch : all_) {
    for (const Readback& readback : batch->readbacks) readback.ticket->drop_reference();
    if (batch->ticks != 0) ticks_.destroy(batch->ticks, ticks_bytes(max_timestamps_));
    api.vkDestroyQueryPool(context_->device(), batch->timestamps, nullptr);
    api.vkDestroyCommandPool(context_->device(), batch->pool, nullptr);
  }
}

Result<Batch*> BatchPool::take() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<Batch>());
    free_.reserve(all_.size());
    Batch* const batch = all_.back().get();
    MILLRACE_TRY(fill(batch));
    return batch;
  }
  Batch* const batch = free_.back();
  free_.pop_back();
  return batch;
}

Result<void> BatchPool::fill(Batch* batch) {
  const VulkanApi& api = context_->api();
  batch->readbacks.reserve(kReadbackRoom);
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool.queueFamilyIndex = context_->candidate().queue_family;
  MILLRACE_VULKAN_TRY(api.vkCreateCommandPool(context_->device(), &pool, nullptr, &batch->pool),
                      "vkCreateCommandPool");
  VkCommandBufferAllocateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffer.commandPool = batch->pool;
  buffer.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  buffer.commandBufferCount = 1;
  MILLRACE_VULKAN_TRY(api.vkAllocateCommandBuffers(context_->device(), &buffer, &batch->buffer),
                      "vkAllocateCommandBuffers");
  if (context_->ns_per_tick() == 0) return {};
  VkQueryPoolCreateInfo queries{};
  queries.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
  queries.queryCount = max_timestamps_;
  MILLRACE_VULKAN_TRY(
      api.vkCreateQueryPool(context_->device(), &queries, nullptr, &batch->timestamps),
      "vkCreateQueryPool");
  MILLRACE_ASSIGN(batch->ticks, ticks_.create(ticks_bytes(max_timestamps_)));
  return {};
}

void BatchPool::give_back(Batch* batch) {
  for (const Readback& readback : batch->readbacks) readback.ticket->drop_reference();
  batch->readbacks.clear();
  batch->traced.clear();
  batch->n_timestamps = 0;
  free_.push_back(batch);
}

void begin_timestamps(const VulkanContext& context, Batch* batch) {
  if (batch->timestamps == VK_NULL_HANDLE) return;
  context.api().vkCmdResetQueryPool(batch->buffer, batch->timestamps, 0, most_timestamps(context));
}

void put_timestamp(const VulkanContext& context, Batch* batch) {
  if (batch->timestamps == VK_NULL_HANDLE) return;
  context.api().vkCmdWriteTimestamp2(batch->buffer, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                     batch->timestamps, batch->n_timestamps++);
}

void copy_timestamps(const VulkanContext& context, Batch* batch) {
  if (batch->timestamps == VK_NULL_HANDLE) return;
  const VulkanBlock& to = block_of(batch->ticks);
  context.api().vkCmdCopyQueryPoolResults(batch->buffer, batch->timestamps, 0, batch->n_timestamps,
                                          to.buffer(), to.offset, sizeof(uint64_t),
                                          kQueuedTimestamps);
}

}  // namespace millrace::vulkan
