// GuardedKernel: runs a kernel on private copies of its bindings and finds what it may not touch.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "device/device.h"
#include "kernels/kernel.h"

namespace millrace::simulated {

/// Runs kernels between guard zones. Each runs twice: the guards, and what write-only bindings hold
/// before, are a pattern in one run and its complement in the other. So a write outside a binding,
/// a write to a binding that is only read, and a result that depends on what the kernel may not
/// read all show, with whatever values.
class GuardedKernel {
 public:
  /// Runs `kernel` on copies, `access` telling what each binding of `call` is for; copies what it
  /// wrote back. Returns the first thing wrong, or nothing; then the bindings are as they were.
  std::string run(kernels::CpuKernel kernel, const kernels::KernelCall& call,
                  std::span<const Access> access);

 private:
  struct Arena {
    std::unique_ptr<std::byte[]> memory;
    std::byte* first = nullptr;  // aligned
    size_t bytes = 0;
  };
  /// Where binding `i` lies in an arena.
  static size_t place_of(const kernels::KernelCall& call, size_t i);
  std::string run_once(kernels::CpuKernel kernel, const kernels::KernelCall& call,
                       std::span<const Access> access, bool inverted, Arena* arena);

  Arena arenas_[2];
};

}  // namespace millrace::simulated
