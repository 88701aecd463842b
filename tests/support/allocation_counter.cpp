// The counted family of operators new and delete.
#include "support/allocation_counter.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/thread_checks.h"

namespace {

thread_local bool counting = false;
thread_local uint64_t n_allocations = 0;

}  // namespace

#ifndef MILLRACE_THREAD_SANITIZER

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counting) ++n_allocations;
  // Zero bytes too get an address of their own.
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* address = allocate(bytes, alignment);
  if (address == nullptr) throw std::bad_alloc();
  return address;
}

}  // namespace

// The whole family, plain, array and nothrow: a sanitizer brings its own of each that is missing
// here, and reports memory that one family gave and the other took back.
using std::align_val_t;
using std::nothrow_t;
using std::size_t;

void* operator new(size_t bytes) { return allocate_or_throw(bytes, 16); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes, 16); }
void* operator new(size_t bytes, align_val_t to) {
  return allocate_or_throw(bytes, static_cast<size_t>(to));
}
void* operator new[](size_t bytes, align_val_t to) {
  return allocate_or_throw(bytes, static_cast<size_t>(to));
}
void* operator new(size_t bytes, const nothrow_t&) noexcept { return allocate(bytes, 16); }
void* operator new[](size_t bytes, const nothrow_t&) noexcept { return allocate(bytes, 16); }
void* operator new(size_t bytes, align_val_t to, const nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(to));
}
void* operator new[](size_t bytes, align_val_t to, const nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(to));
}
void operator delete(void* address) noexcept { std::free(address); }
void operator delete[](void* address) noexcept { std::free(address); }
void operator delete(void* address, const nothrow_t&) noexcept { std::free(address); }
void operator delete[](void* address, const nothrow_t&) noexcept { std::free(address); }
void operator delete(void* address, align_val_t, const nothrow_t&) noexcept { std::free(address); }
void operator delete[](void* address, align_val_t, const nothrow_t&) noexcept {
  std::free(address);
}
void operator delete(void* address, size_t) noexcept { std::free(address); }
void operator delete[](void* address, size_t) noexcept { std::free(address); }
void operator delete(void* address, align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, align_val_t) noexcept { std::free(address); }
void operator delete(void* address, size_t, align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, size_t, align_val_t) noexcept { std::free(address); }

#endif

namespace millrace::test {

bool AllocationCounter::works() {
#ifdef MILLRACE_THREAD_SANITIZER
  return false;
#else
  return true;
#endif
}

AllocationCounter::AllocationCounter() {
  n_allocations = 0;
  counting = true;
}

AllocationCounter::~AllocationCounter() { counting = false; }

uint64_t AllocationCounter::count() const { return n_allocations; }

}  // namespace millrace::test
