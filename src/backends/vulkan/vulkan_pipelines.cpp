// Pipelines out of the embedded SPIR-V.
#include "backends/vulkan/vulkan_pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <thread>

namespace millrace::vulkan {
namespace {

constexpr uint32_t kPushBytes = 8;  // an address
constexpr uint32_t kMaxWorkers = 8;
// Every device has as many, and kernels walk the groups that are more.
constexpr uint64_t kMaxGroups = 65'535;

/// Whether a module computes with 8-bit integers: its capabilities are its first instructions.
bool needs_bytes(std::span<const std::byte> spirv) {
  constexpr size_t kHeaderWords = 5, kCapabilityWords = 2;
  constexpr uint32_t kOpCapability = 17, kInt8 = 39;
  std::array<uint32_t, kCapabilityWords> words{};
  for (size_t at = kHeaderWords * sizeof(uint32_t); at + sizeof(words) <= spirv.size();
       at += sizeof(words)) {
    std::memcpy(words.data(), spirv.data() + at, sizeof(words));
    if (words[0] != (kCapabilityWords << 16 | kOpCapability)) return false;
    if (words[1] == kInt8) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<VulkanPipelines>> VulkanPipelines::make(const VulkanContext* context) {
  std::unique_ptr<VulkanPipelines> pipelines(new VulkanPipelines(context));
  MILLRACE_TRY(pipelines->create_layout());
  for (size_t i = 0; i < static_cast<size_t>(KernelId::kCount); ++i) {
    for (const GpuPass& plan : gpu_passes(static_cast<KernelId>(i))) {
      auto entry = pipelines->find_entry(plan.entry_point);
      if (!entry.ok()) {
        // Built without the compiler of the kernels: launches say so.
        pipelines->passes_[i].clear();
        break;
      }
      pipelines->passes_[i].push_back({plan, entry.value()});
    }
  }
  if (!context->info().software) pipelines->make_in_background();
  return pipelines;
}

Result<void> VulkanPipelines::create_layout() {
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  MILLRACE_VULKAN_TRY(
      context_->api().vkCreatePipelineLayout(context_->device(), &info, nullptr, &layout_),
      "vkCreatePipelineLayout");
  return {};
}

Result<size_t> VulkanPipelines::find_entry(const char* entry_point) {
  const GpuEntry* const code = find_gpu_entry(entry_point);
  if (code == nullptr || code->spirv.empty()) {
    return Error{ErrorCode::Internal, fmt::format("no SPIR-V of {} in this build", entry_point)};
  }
  const auto known = std::find_if(entries_.begin(), entries_.end(),
                                  [code](const auto& entry) { return entry->code == code; });
  if (known != entries_.end()) return static_cast<size_t>(known - entries_.begin());
  entries_.push_back(std::make_unique<Entry>());
  entries_.back()->code = code;
  return entries_.size() - 1;
}

uint32_t VulkanPipelines::groups(const PlannedPass& pass, uint64_t threads) const {
  uint64_t needed = 1;
  if (pass.plan.shape == GpuShape::PerGroup) needed = threads;
  if (pass.plan.shape == GpuShape::PerThread) {
    const uint64_t items = pass.plan.items_per_group;
    needed = threads / items + (threads % items != 0 ? 1 : 0);
  }
  return static_cast<uint32_t>(
      std::min({needed, kMaxGroups, static_cast<uint64_t>(context_->max_groups())}));
}

Result<VkPipeline> VulkanPipelines::get(size_t pipeline) {
  Entry& entry = *entries_[pipeline];
  std::call_once(entry.made, [this, &entry] {
    auto built = build(*entry.code);
    if (built.ok()) {
      entry.pipeline = built.value();
    } else {
      entry.error = {built.error().code,
                     fmt::format("entry point {}: {}", entry.code->name, built.error().message)};
    }
  });
  if (entry.pipeline == VK_NULL_HANDLE) return entry.error;
  return entry.pipeline;
}

Result<VkPipeline> VulkanPipelines::build(const GpuEntry& code) const {
  const VulkanApi& api = context_->api();
  const VkDevice device = context_->device();
  if (needs_bytes(code.spirv) && !context_->has_bytes()) {
    // Drivers may end the process over it (SwiftShader, 2026).
    return Error{ErrorCode::Usage, fmt::format("{} has no 8-bit integers", context_->info().name)};
  }
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = code.spirv.size();
  module_info.pCode = reinterpret_cast<const uint32_t*>(code.spirv.data());
  VkShaderModule module = VK_NULL_HANDLE;
  MILLRACE_VULKAN_TRY(api.vkCreateShaderModule(device, &module_info, nullptr, &module),
                      "vkCreateShaderModule");
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = code.name;
  info.layout = layout_;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult made =
      api.vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  api.vkDestroyShaderModule(device, module, nullptr);
  MILLRACE_VULKAN_TRY(made, "vkCreateComputePipelines");
  return pipeline;
}

void VulkanPipelines::make_in_background() {
  const uint32_t n = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxWorkers);
  workers_ = std::make_unique<WorkerPool>(n);
  for (uint32_t i = 0; i < n; ++i) {
    workers_->post([this] {
      // An error comes back where the pipeline is needed.
      for (size_t at = next_++; at < entries_.size() && !closing_; at = next_++) {
        if (!get(at).ok()) continue;
      }
    });
  }
}

VulkanPipelines::~VulkanPipelines() {
  closing_ = true;
  workers_.reset();
  for (const auto& entry : entries_) {
    context_->api().vkDestroyPipeline(context_->device(), entry->pipeline, nullptr);
  }
  context_->api().vkDestroyPipelineLayout(context_->device(), layout_, nullptr);
}

}  // namespace millrace::vulkan
