// The GPU code of this build: every entry point of src/kernels/*.slang, embedded as the drivers
// take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace {

/// One compute entry point. Several share one image.
struct GpuEntry {
  const char* name;
  uint32_t group_size;               // threads per group
  std::span<const std::byte> spirv;  // a module that names its entry points
  std::span<const std::byte> cuda;   // a fatbin; empty where nvcc was absent
};

/// All entry points, by name; none where the Slang compiler was absent.
std::span<const GpuEntry> gpu_entries();

/// The entry point called `name`, or null.
inline const GpuEntry* find_gpu_entry(std::string_view name) {
  for (const GpuEntry& entry : gpu_entries()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace millrace
