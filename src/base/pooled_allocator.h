// PooledAllocator: single objects from a free list, for what is made and dropped every step.
#pragma once

#include <cstddef>
#include <mutex>
#include <new>

namespace millrace {

/// Pieces of memory of one size, kept for reuse and never given back to the system. Thread-safe.
template <size_t kBytes, size_t kAlignment>
class FreeList {
 public:
  void* take() {
    {
      std::lock_guard lock(mutex_);
      if (first_ != nullptr) {
        Node* node = first_;
        first_ = node->next;
        return node;
      }
    }
    return ::operator new(kSize, std::align_val_t(kAlign));
  }

  void give_back(void* address) {
    std::lock_guard lock(mutex_);
    first_ = new (address) Node{first_};
  }

  /// The one list of this size. It outlives every static object that may hold a piece.
  static FreeList& shared() {
    static FreeList& list = *new FreeList;
    return list;
  }

 private:
  struct Node {
    Node* next;
  };
  static constexpr size_t kSize = kBytes > sizeof(Node) ? kBytes : sizeof(Node);
  static constexpr size_t kAlign = kAlignment > alignof(Node) ? kAlignment : alignof(Node);

  std::mutex mutex_;
  Node* first_ = nullptr;
};

/// A standard allocator over FreeList, for std::allocate_shared: one object a time is pooled,
/// arrays are not.
template <class T>
struct PooledAllocator {
  using value_type = T;  // NOLINT: the standard's name

  PooledAllocator() = default;
  template <class U>
  PooledAllocator(const PooledAllocator<U>&) {}  // NOLINT: implicit, as allocators convert

  T* allocate(size_t n) {
    if (n == 1) return static_cast<T*>(FreeList<sizeof(T), alignof(T)>::shared().take());
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(alignof(T))));
  }
  void deallocate(T* address, size_t n) {
    if (n == 1) return FreeList<sizeof(T), alignof(T)>::shared().give_back(address);
    ::operator delete(address, std::align_val_t(alignof(T)));
  }
  template <class U>
  bool operator==(const PooledAllocator<U>&) const {
    return true;
  }
};

}  // namespace millrace
