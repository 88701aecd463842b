// Parts: what a Vulkan device is made of, in the order in which it is made.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/vulkan/submit_queue.h"
#include "backends/vulkan/vulkan_memory.h"
#include "device/buffer_store.h"

namespace millrace::vulkan {

/// Everything that the driver or a thread may still use while the device ends.
struct Parts {
  std::unique_ptr<VulkanContext> context;
  std::unique_ptr<VulkanPipelines> pipelines;
  std::unique_ptr<VulkanMemory> memory;
  std::unique_ptr<HostMemory> uploads, downloads, arguments;
  std::unique_ptr<BufferStore> store;
  std::unique_ptr<SubmitQueue> queue;
  WaitLedger ledger;

  /// Errors: Usage without such a device; what the driver says.
  static Result<std::unique_ptr<Parts>> make(const VulkanOptions& options);
};

/// Parts of devices whose work did not end in time. The driver still uses them; nothing can stop
/// it.
class AbandonedParts {
 public:
  void add(std::unique_ptr<Parts> parts);
  /// Lets go of what has ended after all.
  void tidy();
  /// The program's only one, which no exit destroys.
  static AbandonedParts& instance();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Parts>> all_;
};

}  // namespace millrace::vulkan
