// The making of a Vulkan device's parts, and the keeping of those that cannot be let go.
#include "backends/vulkan/parts.h"

#include <algorithm>

namespace millrace::vulkan {
namespace {

constexpr uint64_t kSlabBytes = uint64_t{32} << 20;
constexpr uint64_t kReadbackPart = 4;  // the readback ring's part of the upload ring
// Some 2,000 launches: the argument blocks of the steps that are in flight.
constexpr uint64_t kArgumentsBytes = uint64_t{1} << 20;

}  // namespace

Result<std::unique_ptr<Parts>> Parts::make(const VulkanOptions& options) {
  auto parts = std::make_unique<Parts>();
  MILLRACE_ASSIGN(parts->context, VulkanContext::open(options));
  VulkanContext* const context = parts->context.get();
  MILLRACE_ASSIGN(parts->pipelines, VulkanPipelines::make(context));
  parts->memory = std::make_unique<VulkanMemory>(context, MemoryUse::Buffers, kSlabBytes);
  MILLRACE_ASSIGN(parts->uploads,
                  HostMemory::make(context, MemoryUse::Uploads, options.staging_bytes));
  MILLRACE_ASSIGN(parts->downloads, HostMemory::make(context, MemoryUse::Downloads,
                                                     options.staging_bytes / kReadbackPart));
  MILLRACE_ASSIGN(parts->arguments,
                  HostMemory::make(context, MemoryUse::Arguments, kArgumentsBytes));
  const uint64_t limit =
      options.memory_bytes > 0 ? options.memory_bytes : context->info().memory_bytes;
  parts->store =
      std::make_unique<BufferStore>(parts->memory.get(), limit, Block{}, "vulkan device");
  parts->queue = std::make_unique<SubmitQueue>(context, parts->pipelines.get());
  return parts;
}

void AbandonedParts::add(std::unique_ptr<Parts> parts) {
  std::lock_guard lock(mutex_);
  all_.push_back(std::move(parts));
}

void AbandonedParts::tidy() {
  std::lock_guard lock(mutex_);
  std::erase_if(all_, [](const std::unique_ptr<Parts>& parts) {
    return parts->queue->completion().passed() >= parts->queue->last_recorded();
  });
}

AbandonedParts& AbandonedParts::instance() {
  static auto* const kInstance = new AbandonedParts;
  return *kInstance;
}

}  // namespace millrace::vulkan
