// The fake driver's own operator new, so that counters of the program's allocations do not see what
// a real driver does not do either.
#include <cstdlib>
#include <new>

void* operator new(std::size_t bytes) {
  void* const block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
