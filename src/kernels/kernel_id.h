// Kernel ids: one per row of table.inc, shared by every backend.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

enum class KernelId : uint16_t {
#define MILLRACE_KERNEL(name, params, access) name,
#include "kernels/table.inc"
#undef MILLRACE_KERNEL
  kCount
};

/// One row of the kernel table.
struct KernelRow {
  const char* name;
  size_t params_bytes;
  /// One letter per binding: r read, w write, x both. A trailing '*' lets the last letter repeat.
  const char* access;
};

/// The row of `id`.
const KernelRow& kernel_row(KernelId id);

}  // namespace millrace
