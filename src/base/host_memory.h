// What memory this process has, and what it may still take.
#pragma once

#include <cstdint>
#include <filesystem>

namespace millrace {

/// Bytes that this process may take beside what it has: what the machine has available
/// (MemAvailable) and what each control group that it is in leaves of its limit (cgroup v2 or v1;
/// file cache that can be dropped counts as left), whichever is least. Files below `root` are read;
/// tests give another. UINT64_MAX where nothing can be read.
uint64_t available_host_bytes(const std::filesystem::path& root = "/");

/// Bytes of memory that this process has now (its resident set).
uint64_t resident_host_bytes();

/// Has the C library give large blocks back to the system as soon as they are freed, so that what
/// was freed is no part of the resident set. Without this it keeps blocks of up to 32 MiB.
void return_large_blocks_at_once();

}  // namespace millrace
