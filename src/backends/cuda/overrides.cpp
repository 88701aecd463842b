// The table of overrides. It is empty: sorts take their count from device memory, which no vendor
// routine here does without the host.
#include "backends/cuda/overrides.h"

#include <span>

namespace millrace::cuda {
namespace {

constexpr std::span<const Override> kOverrides;

}  // namespace

const Override* find_override(KernelId kernel) {
  for (const Override& one : kOverrides) {
    if (one.kernel == kernel) return &one;
  }
  return nullptr;
}

}  // namespace millrace::cuda
