// Marks and launches.
#include "tensor/launch.h"

#include <fmt/format.h>

#include "device/test_hooks.h"
#include "tensor/check.h"

namespace millrace {
namespace {

Binding bind_contiguous(const char* op, const Tensor& tensor, Access access, const Site& site) {
  if (!tensor.defined()) fail(op, "the tensor is undefined", {}, site);
  if (access != Access::Read) require_writable(op, tensor, {&tensor}, site);
  if (!tensor.is_contiguous()) fail(op, "the tensor is not contiguous", {&tensor}, site);
  return {tensor.extent(), access};
}

}  // namespace

Binding read(const Tensor& tensor, Site site) {
  return bind_contiguous("read", tensor, Access::Read, site);
}

Binding write(const Tensor& tensor, Site site) {
  return bind_contiguous("write", tensor, Access::Write, site);
}

Binding update(const Tensor& tensor, Site site) {
  return bind_contiguous("update", tensor, Access::ReadWrite, site);
}

Binding read_strided(const Tensor& tensor, Site site) {
  if (!tensor.defined()) fail("read_strided", "the tensor is undefined", {}, site);
  return {tensor.extent(), Access::Read};
}

Binding update_strided(const Tensor& tensor, Site site) {
  if (!tensor.defined()) fail("update_strided", "the tensor is undefined", {}, site);
  require_writable("update_strided", tensor, {&tensor}, site);
  return {tensor.extent(), Access::ReadWrite};
}

void detail::launch_bytes(Device& device, KernelId kernel, uint64_t threads, Slice count,
                          std::span<const Binding> bindings, std::span<const std::byte> params,
                          Site site) {
  if (threads == 0) return;
  pass_wait_place(WaitPlace::Facade, device);
  Launch launch{kernel, threads, count, bindings, params, site};
  Result<void> queued = device.launch(launch);
  if (queued.ok()) return;
  raise({queued.error().code, fmt::format("kernel {}: {}; launched at {}", kernel_row(kernel).name,
                                          queued.error().message, describe(site))});
}

}  // namespace millrace
