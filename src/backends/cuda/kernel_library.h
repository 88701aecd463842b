// KernelLibrary: the code of every kernel of the table, loaded, with how to dispatch it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/context.h"
#include "backends/cuda/cuda_options.h"
#include "kernels/gpu_code.h"
#include "kernels/gpu_plan.h"

namespace millrace::cuda {

/// One pass of a kernel's plan.
struct LoadedPass {
  Function function = nullptr;
  GpuPass plan;
  uint32_t group_size = 0;  // threads
  uint32_t max_groups = 0;
};

/// Groups to dispatch for a launch of `threads`: the needed ones, or as many as the device keeps
/// busy with, which then walk the rest.
uint32_t dispatched_groups(const LoadedPass& pass, uint64_t threads);

class KernelLibrary {
 public:
  /// Loads all code, so that no launch has to. Errors: what the driver says, with the entry point.
  static Result<std::unique_ptr<KernelLibrary>> load(const CudaContext& context,
                                                     const CudaOptions& options);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  /// The passes of `kernel` in order; none where it has no code here.
  std::span<const LoadedPass> passes(KernelId kernel) const {
    return passes_[static_cast<size_t>(kernel)];
  }

 private:
  explicit KernelLibrary(const CudaContext& context) : context_(context) {}
  /// The module that holds `entry`, loaded once; `what` is for errors.
  Result<Module> module_of(const GpuEntry& entry, const std::string& what);
  Result<LoadedPass> load_pass(const GpuPass& plan, const CudaOptions& options);

  const CudaContext& context_;
  std::vector<std::pair<const std::byte*, Module>> modules_;  // by image
  std::vector<LoadedPass> passes_[static_cast<size_t>(KernelId::kCount)];
};

}  // namespace millrace::cuda
