// available_host_bytes() on made files of a kernel, and the resident set of this process.
#include "base/host_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;

class HostMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("millrace-host-memory-" + std::to_string(getpid()));
    write("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    4096 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  fs::path root_;
};

TEST_F(HostMemory, IsWhatTheMachineHasAvailableWithoutAGroup) {
  EXPECT_EQ(available_host_bytes(root_), 4 * kMiB);
}

TEST_F(HostMemory, IsWhatTheGroupLeavesWhereFileCacheCountsAsLeft) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "3145728\n");
  write("sys/fs/cgroup/a/b/memory.current", "2097152\n");
  write("sys/fs/cgroup/a/b/memory.stat", "anon 5\ninactive_file 1048576\nactive_file 7\n");
  EXPECT_EQ(available_host_bytes(root_), 2 * kMiB);
}

TEST_F(HostMemory, IsTheLeastOfAllGroupsAbove) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/memory.max", "1048576\n");
  write("sys/fs/cgroup/a/memory.current", "524288\n");
  EXPECT_EQ(available_host_bytes(root_), kMiB / 2);
}

TEST_F(HostMemory, ReadsTheGroupsOfTheFirstVersionToo) {
  write("proc/self/cgroup", "7:cpu:/c\n4:memory:/a\n0::/\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3145728\n");
  write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "2097152\n");
  write("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 524288\n");
  EXPECT_EQ(available_host_bytes(root_), kMiB + kMiB / 2);
}

TEST_F(HostMemory, IsNothingWhereAGroupIsFull) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1048576\n");
  write("sys/fs/cgroup/memory.current", "2097152\n");
  EXPECT_EQ(available_host_bytes(root_), 0u);
}

TEST_F(HostMemory, IsUnlimitedWhereNothingCanBeRead) {
  EXPECT_EQ(available_host_bytes(root_ / "nowhere"), UINT64_MAX);
}

TEST_F(HostMemory, OfThisMachineIsThereAndTheResidentSetFollowsWhatIsTouched) {
  EXPECT_GT(available_host_bytes(), 0u);
  // A mapping of its own: a compiler may leave out a vector that nobody reads.
  constexpr size_t kBytes = 64 * kMiB;
  void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const uint64_t before = resident_host_bytes();
  volatile char* pages = static_cast<char*>(mapped);
  for (size_t at = 0; at < kBytes; at += 4096) pages[at] = 1;
  EXPECT_GE(resident_host_bytes(), before + 60 * kMiB);
  munmap(mapped, kBytes);
}

}  // namespace
}  // namespace millrace
