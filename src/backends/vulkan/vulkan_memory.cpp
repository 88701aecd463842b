// Slabs and their gaps, and rings of host-visible memory.
#include "backends/vulkan/vulkan_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace::vulkan {
namespace {

constexpr uint64_t kOwnPart = 8;  // blocks from this part of a slab on are on their own

Error too_large(const char* limit, uint64_t bytes, uint64_t most) {
  return {ErrorCode::OutOfMemory,
          fmt::format("a block of {} bytes passes the device's {} of {}", bytes, limit, most)};
}

/// Takes `bytes` from the first gap that has them.
bool take_from_gaps(Slab* slab, uint64_t bytes, uint64_t* offset) {
  for (auto gap = slab->gaps.begin(); gap != slab->gaps.end(); ++gap) {
    if (gap->bytes < bytes) continue;
    *offset = gap->offset;
    gap->offset += bytes;
    gap->bytes -= bytes;
    if (gap->bytes == 0) slab->gaps.erase(gap);
    return true;
  }
  return false;
}

void add_gap(Slab* slab, uint64_t offset, uint64_t bytes) {
  auto& gaps = slab->gaps;
  auto next = std::find_if(gaps.begin(), gaps.end(),
                           [offset](const Slab::Gap& gap) { return gap.offset > offset; });
  next = gaps.insert(next, {offset, bytes});
  if (next + 1 != gaps.end() && next->offset + next->bytes == (next + 1)->offset) {
    next->bytes += (next + 1)->bytes;
    gaps.erase(next + 1);
  }
  if (next != gaps.begin() && (next - 1)->offset + (next - 1)->bytes == next->offset) {
    (next - 1)->bytes += next->bytes;
    gaps.erase(next);
  }
}

}  // namespace

VulkanMemory::VulkanMemory(VulkanContext* context, MemoryUse use, uint64_t slab_bytes)
    : context_(context), kind_(context->memory_kind(use)), slab_bytes_(slab_bytes) {}

VulkanMemory::~VulkanMemory() {
  while (!slabs_.empty()) free_slab(slabs_.back().get());
}

Result<uint64_t> VulkanMemory::create(uint64_t bytes) {
  if (bytes < slab_bytes_ / kOwnPart) return create_in_slab(bytes);
  MILLRACE_ASSIGN(Slab* const slab, make_slab(bytes));
  return reinterpret_cast<uint64_t>(new VulkanBlock{slab, 0});
}

Result<uint64_t> VulkanMemory::create_in_slab(uint64_t bytes) {
  uint64_t offset = 0;
  for (const auto& slab : slabs_) {
    if (take_from_gaps(slab.get(), bytes, &offset)) {
      return reinterpret_cast<uint64_t>(new VulkanBlock{slab.get(), offset});
    }
  }
  MILLRACE_ASSIGN(Slab* const slab, make_slab(slab_bytes_));
  slab->gaps.push_back({bytes, slab_bytes_ - bytes});
  return reinterpret_cast<uint64_t>(new VulkanBlock{slab, 0});
}

void VulkanMemory::destroy(uint64_t handle, uint64_t bytes) {
  const std::unique_ptr<const VulkanBlock> block(reinterpret_cast<const VulkanBlock*>(handle));
  add_gap(block->slab, block->offset, bytes);
  // A slab is kept no longer than its blocks: the pool above is what remembers blocks.
  if (block->slab->gaps.front().bytes == block->slab->bytes) free_slab(block->slab);
}

Result<Slab*> VulkanMemory::make_slab(uint64_t bytes) {
  if (bytes > context_->max_allocation_bytes()) {
    return too_large("maxMemoryAllocationSize", bytes, context_->max_allocation_bytes());
  }
  if (bytes > context_->max_buffer_bytes()) {
    return too_large("maxBufferSize", bytes, context_->max_buffer_bytes());
  }
  if (context_->n_allocations() >= context_->max_allocations()) {
    return Error{ErrorCode::OutOfMemory, fmt::format("the device allows {} allocations at a time",
                                                     context_->max_allocations())};
  }
  auto slab = std::make_unique<Slab>();
  slab->bytes = bytes;
  slabs_.push_back(std::move(slab));
  auto filled = fill_slab(slabs_.back().get());
  if (filled.ok()) return slabs_.back().get();
  free_slab(slabs_.back().get());
  return filled.error();
}

Result<void> VulkanMemory::fill_slab(Slab* slab) {
  const VulkanApi& api = context_->api();
  const VkDevice device = context_->device();
  VkBufferCreateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer.size = slab->bytes;
  buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  MILLRACE_VULKAN_TRY(api.vkCreateBuffer(device, &buffer, nullptr, &slab->buffer),
                      "vkCreateBuffer");
  VkMemoryRequirements needs{};
  api.vkGetBufferMemoryRequirements(device, slab->buffer, &needs);
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &flags;
  info.allocationSize = needs.size;
  info.memoryTypeIndex = kind_.type;
  MILLRACE_VULKAN_TRY(api.vkAllocateMemory(device, &info, nullptr, &slab->memory),
                      "vkAllocateMemory");
  ++context_->n_allocations();
  MILLRACE_VULKAN_TRY(api.vkBindBufferMemory(device, slab->buffer, slab->memory, 0),
                      "vkBindBufferMemory");
  VkBufferDeviceAddressInfo address{};
  address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address.buffer = slab->buffer;
  slab->address = api.vkGetBufferDeviceAddress(device, &address);
  if (!kind_.mapped) return {};
  void* mapped = nullptr;
  MILLRACE_VULKAN_TRY(api.vkMapMemory(device, slab->memory, 0, VK_WHOLE_SIZE, 0, &mapped),
                      "vkMapMemory");
  slab->mapped = static_cast<std::byte*>(mapped);
  return {};
}

void VulkanMemory::free_slab(Slab* slab) {
  const VulkanApi& api = context_->api();
  api.vkDestroyBuffer(context_->device(), slab->buffer, nullptr);
  if (slab->memory != VK_NULL_HANDLE) {
    api.vkFreeMemory(context_->device(), slab->memory, nullptr);
    --context_->n_allocations();
  }
  const auto same = [slab](const auto& other) { return other.get() == slab; };
  slabs_.erase(std::find_if(slabs_.begin(), slabs_.end(), same));
}

Result<std::unique_ptr<HostMemory>> HostMemory::make(VulkanContext* context, MemoryUse use,
                                                     uint64_t ring_bytes) {
  std::unique_ptr<HostMemory> memory(new HostMemory(context, use, ring_bytes));
  const uint64_t bytes = BlockPool::block_bytes(ring_bytes);
  MILLRACE_ASSIGN(const uint64_t handle, memory->memory_.create(bytes));
  memory->ring_ = {.handle = handle, .bytes = bytes, .requested = ring_bytes};
  memory->pool_.add_reserved(bytes);
  memory->store_ = std::make_unique<StagingStore>(&memory->pool_, memory->ring_);
  return memory;
}

HostMemory::~HostMemory() {
  if (ring_.bytes > 0) memory_.destroy(ring_.handle, ring_.bytes);
}

Result<HostMemory::Piece> HostMemory::take(uint64_t bytes, Point point, Point passed) {
  MILLRACE_ASSIGN(const StagedBytes staged, store_->take(bytes, point, passed));
  const VulkanBlock& block = block_of(staged.handle);
  return Piece{.buffer = block.buffer(),
               .offset = block.offset + staged.offset,
               .address = block.address() + staged.offset,
               .mapped = block.mapped() + staged.offset};
}

}  // namespace millrace::vulkan
