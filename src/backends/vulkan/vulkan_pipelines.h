// VulkanPipelines: the entry points of every kernel's plan, as pipelines.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/vulkan/vulkan_context.h"
#include "base/worker_pool.h"
#include "kernels/gpu_code.h"
#include "kernels/gpu_plan.h"

namespace millrace::vulkan {

/// One pass of a kernel's plan.
struct PlannedPass {
  GpuPass plan;
  size_t pipeline = 0;  // which of VulkanPipelines
};

/// All pipelines take one push constant, the 8-byte address of the argument block, and nothing
/// else. Hardware drivers compile for long, so on them worker threads make every pipeline from the
/// moment the device opens, and what is needed first is made by whoever needs it. A software device
/// makes them on demand alone: tests open hundreds of them. Thread-safe.
class VulkanPipelines {
 public:
  /// Error: what the driver says.
  static Result<std::unique_ptr<VulkanPipelines>> make(const VulkanContext* context);
  ~VulkanPipelines();
  VulkanPipelines(const VulkanPipelines&) = delete;
  VulkanPipelines& operator=(const VulkanPipelines&) = delete;

  /// The passes of `kernel` in order; none where it has no code here.
  std::span<const PlannedPass> passes(KernelId kernel) const {
    return passes_[static_cast<size_t>(kernel)];
  }
  /// Groups to dispatch for a launch of `threads`, which walk the needed ones.
  uint32_t groups(const PlannedPass& pass, uint64_t threads) const;
  /// The pipeline, made now if nobody has made it yet. May take long; for worker threads. Error:
  /// what the driver says, with the entry point.
  Result<VkPipeline> get(size_t pipeline);
  VkPipelineLayout layout() const { return layout_; }

 private:
  struct Entry {
    const GpuEntry* code = nullptr;
    std::once_flag made;
    VkPipeline pipeline = VK_NULL_HANDLE;
    Error error;
  };

  explicit VulkanPipelines(const VulkanContext* context) : context_(context) {}
  Result<void> create_layout();
  /// The place of the entry point's pipeline among all. Error: Internal, without code for it.
  Result<size_t> find_entry(const char* entry_point);
  Result<VkPipeline> build(const GpuEntry& code) const;
  void make_in_background();

  const VulkanContext* context_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<PlannedPass> passes_[static_cast<size_t>(KernelId::kCount)];
  std::atomic<size_t> next_ = 0;  // of the background's work
  std::atomic<bool> closing_ = false;
  std::unique_ptr<WorkerPool> workers_;  // last: they use what is above
};

}  // namespace millrace::vulkan
