// The pool behind objects that are made and dropped every step.
#include "base/pooled_allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace millrace {
namespace {

struct alignas(64) Wide {
  int64_t values[5];
};

TEST(PooledAllocator, GivesTheSamePieceAgain) {
  PooledAllocator<Wide> allocator;
  Wide* first = allocator.allocate(1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % alignof(Wide), 0u);
  Wide* second = allocator.allocate(1);
  EXPECT_NE(first, second);
  allocator.deallocate(first, 1);
  EXPECT_EQ(allocator.allocate(1), first);
  allocator.deallocate(first, 1);
  allocator.deallocate(second, 1);
}

TEST(PooledAllocator, PoolsNoArrays) {
  PooledAllocator<Wide> allocator;
  Wide* array = allocator.allocate(3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array) % alignof(Wide), 0u);
  allocator.deallocate(array, 3);
}

TEST(PooledAllocator, ServesSharedPointersOfManyThreads) {
  constexpr int kThreads = 4, kRounds = 1000;
  std::vector<std::thread> threads;
  std::vector<int64_t> sums(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&sums, t] {
      for (int i = 0; i < kRounds; ++i) {
        const auto value = std::allocate_shared<int64_t>(PooledAllocator<int64_t>(), t);
        const auto other = std::allocate_shared<int64_t>(PooledAllocator<int64_t>(), 0);
        sums[t] += *value + *other;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(sums[t], int64_t{t} * kRounds);
}

}  // namespace
}  // namespace millrace
