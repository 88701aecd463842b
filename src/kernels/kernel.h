// How a CPU kernel sees its launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::kernels {

/// The arguments of one launch, resolved to addresses.
struct KernelCall {
  uint64_t threads = 0;
  const std::byte* params = nullptr;
  std::span<std::byte* const> buffers;
  std::span<const uint64_t> bytes;

  template <class T>
  const T& params_as() const {
    return *reinterpret_cast<const T*>(params);
  }
  /// Binding `i` as an array of T.
  template <class T>
  T* buffer(size_t i) const {
    return reinterpret_cast<T*>(buffers[i]);
  }
  /// How many T binding `i` holds.
  template <class T>
  uint64_t size(size_t i) const {
    return bytes[i] / sizeof(T);
  }
};

using CpuKernel = void (*)(const KernelCall&);

// The CPU kernels, one per row of the table, each in src/kernels/<name>.cpp or a file named for its
// family.
#define MILLRACE_KERNEL(name, params, access) void name(const KernelCall& call);
#include "kernels/table.inc"
#undef MILLRACE_KERNEL

}  // namespace millrace::kernels
