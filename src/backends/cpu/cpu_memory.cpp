// Allocation of CPU device memory.
#include "backends/cpu/cpu_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace millrace::cpu {
namespace {

constexpr uint64_t kMapped = uint64_t{1} << 20;
constexpr std::align_val_t kAlign{256};

}  // namespace

Result<uint64_t> CpuMemory::create(uint64_t bytes) {
  void* address = nullptr;
  if (bytes >= kMapped) {
    address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) address = nullptr;
  } else {
    address = ::operator new(bytes, kAlign, std::nothrow);
  }
  if (address == nullptr) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("the system gave no {} bytes: {}", bytes, std::strerror(errno))};
  }
  return reinterpret_cast<uint64_t>(address);
}

void CpuMemory::destroy(uint64_t handle, uint64_t bytes) {
  void* address = reinterpret_cast<void*>(handle);
  if (bytes >= kMapped) {
    munmap(address, bytes);
  } else {
    ::operator delete(address, kAlign);
  }
}

}  // namespace millrace::cpu
