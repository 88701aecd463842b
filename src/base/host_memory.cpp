// Figures of the Linux kernel about memory.
#include "base/host_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// The number after `key` in a file of lines "key number" or "key: number kB".
std::optional<uint64_t> number_after(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    uint64_t number = 0;
    if (word == key && file >> number) return number;
  }
  return std::nullopt;
}

std::optional<uint64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;  // "max" is no number
  return std::nullopt;
}

/// Where a version of control groups keeps its figures, below the file system's root.
struct GroupVersion {
  const char* controllers;  // the field of /proc/self/cgroup, between colons
  const char* mount;
  const char *limit, *used;   // files
  const char* droppable_key;  // of memory.stat
};
constexpr GroupVersion kVersions[] = {
    {"", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
    {"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file"}};

/// What the control group of `folder` leaves.
uint64_t left_in_group(const GroupVersion& version, const fs::path& folder) {
  const auto limit = number_in(folder / version.limit);
  if (!limit) return UINT64_MAX;
  const uint64_t used = number_in(folder / version.used).value_or(0);
  const uint64_t droppable =
      number_after(folder / "memory.stat", version.droppable_key).value_or(0);
  const uint64_t held = used - std::min(used, droppable);
  return *limit - std::min(*limit, held);
}

/// The path of this process's group, from "0::/path" or "4:memory:/path"; "/" where there is none.
fs::path own_group(const GroupVersion& version, const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  const std::string wanted = std::string(":") + version.controllers + ":/";
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(colon, wanted.size(), wanted) != 0) continue;
    return fs::path(line.substr(colon + wanted.size() - 1)).lexically_normal();
  }
  return "/";
}

}  // namespace

uint64_t available_host_bytes(const fs::path& root) {
  uint64_t bytes = UINT64_MAX;
  if (const auto kib = number_after(root / "proc/meminfo", "MemAvailable:")) bytes = *kib * 1024;
  for (const GroupVersion& version : kVersions) {
    // In a container the group's path may be one that only the host sees; the mount's root is then
    // the container's own group.
    fs::path group = own_group(version, root).relative_path();
    for (;; group = group.parent_path()) {
      bytes = std::min(bytes, left_in_group(version, root / version.mount / group));
      if (group.empty()) break;
    }
  }
  return bytes;
}

uint64_t resident_host_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void return_large_blocks_at_once() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 18);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}

}  // namespace millrace
