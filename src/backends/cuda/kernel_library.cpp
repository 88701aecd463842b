// Loading of all code and the bounds of dispatches.
#include "backends/cuda/kernel_library.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace::cuda {

uint32_t dispatched_groups(const LoadedPass& pass, uint64_t threads) {
  uint64_t needed = 1;
  if (pass.plan.shape == GpuShape::PerGroup) needed = threads;
  if (pass.plan.shape == GpuShape::PerThread) {
    needed = (threads + pass.plan.items_per_group - 1) / pass.plan.items_per_group;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(needed, pass.max_groups));
}

Result<Module> KernelLibrary::module_of(const GpuEntry& entry, const std::string& what) {
  for (const auto& [image, module] : modules_) {
    if (image == entry.cuda.data()) return module;
  }
  Module module = nullptr;
  MILLRACE_TRY(context_.driver.check(context_.driver.module_load_data(&module, entry.cuda.data()),
                                     what.c_str()));
  modules_.emplace_back(entry.cuda.data(), module);
  return module;
}

Result<LoadedPass> KernelLibrary::load_pass(const GpuPass& plan, const CudaOptions& options) {
  const Driver& driver = context_.driver;
  const std::string what = fmt::format("load the code of {}", plan.entry_point);
  const GpuEntry* const code = find_gpu_entry(plan.entry_point);
  if (code == nullptr || code->cuda.empty()) {
    return Error{ErrorCode::Usage,
                 fmt::format("cuda device: this build has no CUDA code of {}; it was made without "
                             "slangc or nvcc. Take another device",
                             plan.entry_point)};
  }
  LoadedPass pass{.plan = plan, .group_size = code->group_size};
  MILLRACE_ASSIGN(const Module module, module_of(*code, what));
  MILLRACE_TRY(driver.check(driver.module_get_function(&pass.function, module, plan.entry_point),
                            what.c_str()));
  // Drivers load lazily; a launch that did it would stop the host and the device.
  if (driver.function_load != nullptr) {
    MILLRACE_TRY(driver.check(driver.function_load(pass.function), what.c_str()));
  }
  int groups_per_processor = 0;
  MILLRACE_TRY(driver.check(
      driver.occupancy(&groups_per_processor, pass.function, static_cast<int>(code->group_size), 0),
      what.c_str()));
  const uint64_t resident = static_cast<uint64_t>(std::max(1, groups_per_processor)) *
                            static_cast<uint64_t>(context_.attribute(Attribute::Processors));
  const auto most = static_cast<uint64_t>(context_.attribute(Attribute::MaxGridX));
  pass.max_groups = static_cast<uint32_t>(std::clamp<uint64_t>(resident * options.waves, 1, most));
  return pass;
}

Result<std::unique_ptr<KernelLibrary>> KernelLibrary::load(const CudaContext& context,
                                                           const CudaOptions& options) {
  std::unique_ptr<KernelLibrary> made(new KernelLibrary(context));
  for (size_t i = 0; i < static_cast<size_t>(KernelId::kCount); ++i) {
    for (const GpuPass& plan : gpu_passes(static_cast<KernelId>(i))) {
      MILLRACE_ASSIGN(const LoadedPass pass, made->load_pass(plan, options));
      made->passes_[i].push_back(pass);
    }
  }
  return made;
}

KernelLibrary::~KernelLibrary() {
  context_.use();
  for (const auto& [image, module] : modules_) context_.driver.module_unload(module);
}

}  // namespace millrace::cuda
