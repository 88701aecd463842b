// Launching a kernel of the table on tensors: marks of what each binding does, and launch().
#pragma once

#include <initializer_list>
#include <span>
#include <type_traits>

#include "device/device.h"
#include "tensor/tensor.h"

namespace millrace {

/// Marks a tensor as read by a launch. Errors: undefined, not contiguous.
Binding read(const Tensor& tensor, Site site = Site::current());
/// Marks a tensor as overwritten by a launch. Errors: undefined, not contiguous, expanded.
Binding write(const Tensor& tensor, Site site = Site::current());
/// Marks a tensor as read and written by a launch. Errors: undefined, not contiguous, expanded.
Binding update(const Tensor& tensor, Site site = Site::current());

/// As read(), for kernels that take strides: the range covers every element of any view.
Binding read_strided(const Tensor& tensor, Site site = Site::current());
/// As update(), for kernels that take strides. There is no write_strided(): what lies between the
/// elements of a view keeps its contents.
Binding update_strided(const Tensor& tensor, Site site = Site::current());

namespace detail {
void launch_bytes(Device& device, KernelId kernel, uint64_t threads, Slice count,
                  std::span<const Binding> bindings, std::span<const std::byte> params, Site site);
}  // namespace detail

/// Queues `kernel` over `threads` work items; nothing is queued for 0. Allocates no host memory.
/// Raises what the device reports, with the kernel's name and the call site.
template <class Params>
void launch(Device& device, KernelId kernel, uint64_t threads,
            std::initializer_list<Binding> bindings, const Params& params,
            Site site = Site::current()) {
  static_assert(std::is_trivially_copyable_v<Params>, "parameter blocks are plain data");
  static_assert(sizeof(Params) % 8 == 0, "pad parameter blocks to a multiple of 8 bytes");
  detail::launch_bytes(device, kernel, threads, Slice{}, {bindings.begin(), bindings.size()},
                       std::as_bytes(std::span(&params, 1)), site);
}

/// As above; the kernel runs min(threads, count) work items, `count` a U32 [1] on the device.
template <class Params>
void launch(Device& device, KernelId kernel, uint64_t threads, const Tensor& count,
            std::initializer_list<Binding> bindings, const Params& params,
            Site site = Site::current()) {
  static_assert(std::is_trivially_copyable_v<Params>, "parameter blocks are plain data");
  static_assert(sizeof(Params) % 8 == 0, "pad parameter blocks to a multiple of 8 bytes");
  detail::launch_bytes(device, kernel, threads, count.slice(site),
                       {bindings.begin(), bindings.size()}, std::as_bytes(std::span(&params, 1)),
                       site);
}

}  // namespace millrace
