// Runs the CPU kernels in place of GPU code on the fake CUDA driver.
#pragma once

#include "backends/cuda/fake/fake_cuda.h"

namespace millrace::cuda::fake {

/// A Runner: the last pass of a kernel's plan runs its CPU twin, the others nothing.
Status run_cpu_kernel(const char* entry, const std::byte* arguments, size_t bytes, uint32_t groups);

}  // namespace millrace::cuda::fake
