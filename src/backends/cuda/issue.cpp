// The driver calls of each kind of command.
#include "backends/cuda/issue.h"

#include "backends/cuda/overrides.h"

namespace millrace::cuda {
namespace {

Status launch_pass(const CudaContext& context, const LoadedPass& pass, const Command& command) {
  const uint32_t groups = dispatched_groups(pass, command.threads);
  if (groups == 0) return Status::Ok;
  ArgumentBlock arguments = command.arguments;
  arguments.set_pass(pass.plan.pass, groups);
  const std::span<const std::byte> bytes = arguments.bytes();
  size_t n_bytes = bytes.size();
  void* extra[] = {reinterpret_cast<void*>(kLaunchBuffer), const_cast<std::byte*>(bytes.data()),
                   reinterpret_cast<void*>(kLaunchBufferSize), &n_bytes,
                   reinterpret_cast<void*>(kLaunchEnd)};
  return context.driver.launch_kernel(pass.function, groups, 1, 1, pass.group_size, 1, 1, 0,
                                      context.stream(), nullptr, extra);
}

Status launch(const CudaContext& context, const KernelLibrary& kernels, const Command& command) {
  if (command.threads == 0) return Status::Ok;
  if (const Override* vendor = find_override(command.kernel)) {
    return vendor->launch(context, command);
  }
  for (const LoadedPass& pass : kernels.passes(command.kernel)) {
    if (gpu_skips_pass(pass.plan, command.arguments.params())) continue;
    const Status status = launch_pass(context, pass, command);
    if (status != Status::Ok) return status;
  }
  return Status::Ok;
}

}  // namespace

uint32_t n_driver_calls(const KernelLibrary& kernels, const Command& command) {
  if (command.kind != Command::Kind::Kernel) return 1;
  if (const Override* vendor = find_override(command.kernel)) return vendor->n_driver_calls;
  return static_cast<uint32_t>(kernels.passes(command.kernel).size());
}

Status issue(const CudaContext& context, const KernelLibrary& kernels, const Command& command) {
  if (command.kind == Command::Kind::Kernel) return launch(context, kernels, command);
  if (command.bytes == 0) return Status::Ok;
  const Driver& driver = context.driver;
  switch (command.kind) {
    case Command::Kind::Upload:
      return driver.copy_to_device(command.to, reinterpret_cast<const void*>(command.from),
                                   command.bytes, context.stream());
    case Command::Kind::Download:
      return driver.copy_to_host(reinterpret_cast<void*>(command.to), command.from, command.bytes,
                                 context.stream());
    case Command::Kind::Copy:
      return driver.copy_on_device(command.to, command.from, command.bytes, context.stream());
    case Command::Kind::Fill:
      return driver.set_words(command.to, command.pattern, command.bytes / 4, context.stream());
    case Command::Kind::Kernel:
      break;
  }
  return Status::Ok;
}

}  // namespace millrace::cuda
