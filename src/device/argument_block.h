// ArgumentBlock: what a GPU kernel is given, as one block of bytes in the layout that every entry
// point declares (gpu_plan.h says which entry points a kernel has).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace millrace {

/// Little-endian, in this order: the head, the device address of each binding as the kernel's row
/// has them, the parameter block.
class ArgumentBlock {
 public:
  struct Head {
    uint64_t threads;  // the launch's bound
    uint64_t count;    // device address of a u32 that bounds them too, or 0
    uint64_t scratch;  // device address, or 0
    uint32_t pass;     // the pass's number
    uint32_t groups;   // groups dispatched; a kernel walks the needed ones in steps of this
  };
  static constexpr size_t kMaxBindings = 24;
  static constexpr size_t kMaxParamsBytes = 512;
  static constexpr size_t kMaxBytes = sizeof(Head) + 8 * kMaxBindings + kMaxParamsBytes;

  /// Begins a block anew. Then, in this order: add_address() per binding, add_params() once.
  void begin(uint64_t threads) {
    size_ = sizeof(Head);
    put(0, Head{.threads = threads, .count = 0, .scratch = 0, .pass = 0, .groups = 0});
  }
  void set_count(uint64_t address) { put(offsetof(Head, count), address); }
  void set_scratch(uint64_t address) { put(offsetof(Head, scratch), address); }
  void add_address(uint64_t address) {
    put(size_, address);
    size_ += sizeof(address);
  }
  void add_params(std::span<const std::byte> params) {
    params_begin_ = size_;
    if (!params.empty()) std::memcpy(bytes_.data() + size_, params.data(), params.size());
    size_ += params.size();
  }
  /// Makes the block that of one pass; the rest stays.
  void set_pass(uint32_t pass, uint32_t groups) {
    put(offsetof(Head, pass), pass);
    put(offsetof(Head, groups), groups);
  }
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }
  /// The parameter block in it.
  std::span<const std::byte> params() const { return bytes().subspan(params_begin_); }

 private:
  template <class T>
  void put(size_t offset, const T& value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }

  size_t size_ = 0, params_begin_ = 0;
  alignas(16) std::array<std::byte, kMaxBytes> bytes_;
};
static_assert(sizeof(ArgumentBlock::Head) == 32);

}  // namespace millrace
