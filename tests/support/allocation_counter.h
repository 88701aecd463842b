// AllocationCounter: counts calls of operator new on one thread. A test binary links
// allocation_counter.cpp for it, which replaces the whole family of operators.
#pragma once

#include <cstdint>

namespace millrace::test {

/// Counts the allocations of the calling thread while it lives. One at a time per thread.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;

  /// False under ThreadSanitizer, which brings operators of its own that cannot be replaced:
  /// nothing is counted there.
  static bool works();
  /// Allocations since construction.
  uint64_t count() const;
};

}  // namespace millrace::test
