// BufferTable: the live buffers of a device by id, where an id that was released is never found
// again.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"

namespace millrace {

/// Records of type T by BufferId. An id holds a slot and the slot's generation, so a stale id is
/// told from the slot's next user (until the generation returns after 4095 uses of the slot; slots
/// are reused oldest first). A slot keeps its T, and with it the T's memory, from user to user.
template <class T>
class BufferTable {
 public:
  /// A new id, or an id of 0 when 2^20 buffers are live. find() gives its T, as its last user left
  /// it.
  BufferId insert() {
    uint32_t index = first_free_;
    if (index == kNone) {
      if (slots_.size() == kMaxSlots) return {};
      index = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      first_free_ = slots_[index].next_free;
      if (first_free_ == kNone) last_free_ = kNone;
    }
    slots_[index].live = true;
    ++size_;
    return BufferId{slots_[index].generation << kIndexBits | index};
  }

  /// The record of a live buffer, or nullptr. Valid until the next insert().
  T* find(BufferId id) {
    const uint32_t index = id.value & (kMaxSlots - 1);
    if (index >= slots_.size()) return nullptr;
    Slot& slot = slots_[index];
    return slot.live && slot.generation == id.value >> kIndexBits ? &slot.record : nullptr;
  }

  /// Forgets a live buffer.
  void erase(BufferId id) {
    const uint32_t index = id.value & (kMaxSlots - 1);
    Slot& slot = slots_[index];
    slot.live = false;
    slot.generation = slot.generation == kMaxGeneration ? 1 : slot.generation + 1;
    slot.next_free = kNone;
    if (last_free_ == kNone) {
      first_free_ = index;
    } else {
      slots_[last_free_].next_free = index;
    }
    last_free_ = index;
    --size_;
  }

  /// Calls visit(T&) for each live buffer.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (Slot& slot : slots_) {
      if (slot.live) visit(slot.record);
    }
  }
  size_t size() const { return size_; }

 private:
  static constexpr uint32_t kIndexBits = 20;
  static constexpr uint32_t kMaxSlots = 1u << kIndexBits;
  static constexpr uint32_t kMaxGeneration = (1u << (32 - kIndexBits)) - 1;
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Slot {
    T record{};
    uint32_t generation = 1;
    uint32_t next_free = kNone;
    bool live = false;
  };

  std::vector<Slot> slots_;
  uint32_t first_free_ = kNone;
  uint32_t last_free_ = kNone;
  size_t size_ = 0;
};

}  // namespace millrace
