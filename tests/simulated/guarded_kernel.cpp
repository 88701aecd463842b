// GuardedKernel: copies, guards and comparison.
#include "simulated/guarded_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "simulated/simulated_device.h"

namespace millrace::simulated {
namespace {

constexpr size_t kGuard = 256;  // at least, on both sides of a binding; also the alignment
// What write-only bindings hold at first. Not what the guards hold: a guard's word that ends up in
// a binding would pass for a word that was not written.
constexpr uint32_t kUnwritten = 0xffe1c0de;

size_t padded(size_t bytes) { return (bytes + kGuard - 1) / kGuard * kGuard; }

std::byte byte_of(uint32_t pattern, size_t position) {
  return static_cast<std::byte>(pattern >> (8 * (position % 4)));
}

// The first byte of [begin, end) that is not the pattern's, or `end`.
size_t first_change(const std::byte* memory, size_t begin, size_t end, uint32_t pattern) {
  while (begin < end && memory[begin] == byte_of(pattern, begin)) ++begin;
  return begin;
}

uint64_t word_at(const std::byte* memory) {
  uint64_t word;
  std::memcpy(&word, memory, sizeof(word));
  return word;
}

// The first byte that differs between the two runs, or `bytes`. With `may_skip`, bytes that neither
// run wrote do not count.
size_t first_doubtful(const std::byte* a, const std::byte* b, size_t bytes, bool may_skip) {
  constexpr uint64_t kWord = uint64_t{kUnwritten} << 32 | kUnwritten;
  for (size_t at = 0; at < bytes;) {
    if (at + 8 <= bytes) {
      const uint64_t x = word_at(a + at), y = word_at(b + at);
      if (x == y || (may_skip && x == kWord && y == ~kWord)) {
        at += 8;
        continue;
      }
    }
    const bool untouched =
        may_skip && a[at] == byte_of(kUnwritten, at) && b[at] == byte_of(~kUnwritten, at);
    if (a[at] != b[at] && !untouched) return at;
    ++at;
  }
  return bytes;
}

// Copies the bytes on which the runs agree: all others were not written.
void copy_written(std::byte* to, const std::byte* a, const std::byte* b, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    if (at + 8 <= bytes && word_at(a + at) == word_at(b + at)) {
      std::memcpy(to + at, a + at, 8);
      at += 8;
      continue;
    }
    if (a[at] == b[at]) to[at] = a[at];
    ++at;
  }
}

}  // namespace

size_t GuardedKernel::place_of(const kernels::KernelCall& call, size_t i) {
  size_t at = kGuard;
  for (size_t j = 0; j < i; ++j) at += padded(call.bytes[j]) + kGuard;
  return at;
}

std::string GuardedKernel::run_once(kernels::CpuKernel kernel, const kernels::KernelCall& call,
                                    std::span<const Access> access, bool inverted, Arena* arena) {
  const uint32_t pattern = inverted ? ~kPoison : kPoison;
  const uint32_t unwritten = inverted ? ~kUnwritten : kUnwritten;
  const size_t n = call.buffers.size();
  const size_t bytes = place_of(call, n);
  if (arena->bytes < bytes) {
    arena->memory = std::make_unique_for_overwrite<std::byte[]>(bytes + kGuard);
    void* first = arena->memory.get();
    size_t space = bytes + kGuard;
    arena->first = static_cast<std::byte*>(std::align(kGuard, bytes, first, space));
    arena->bytes = bytes;
  }
  std::fill_n(reinterpret_cast<uint32_t*>(arena->first), bytes / sizeof(uint32_t), pattern);
  std::vector<std::byte*> copies(n);
  for (size_t i = 0; i < n; ++i) {
    copies[i] = arena->first + place_of(call, i);
    if (call.bytes[i] == 0) continue;
    if (access[i] == Access::Write) {
      std::fill_n(reinterpret_cast<uint32_t*>(copies[i]), call.bytes[i] / 4, unwritten);
      std::memcpy(copies[i] + call.bytes[i] / 4 * 4, &unwritten, call.bytes[i] % 4);
    } else {
      std::memcpy(copies[i], call.buffers[i], call.bytes[i]);
    }
  }
  kernels::KernelCall inner = call;
  inner.buffers = copies;
  kernel(inner);

  size_t guard_begin = 0;
  for (size_t i = 0; i <= n; ++i) {
    const size_t guard_end = place_of(call, i);
    const size_t changed = first_change(arena->first, guard_begin, guard_end, pattern);
    if (changed < guard_end) {
      // The nearer of the two neighbours is the likelier culprit.
      const bool after = i > 0 && (i == n || changed - guard_begin < guard_end - changed);
      return fmt::format("wrote {} byte(s) {} binding {}",
                         after ? changed - guard_begin + 1 : guard_end - changed,
                         after ? "past the end of" : "before the start of", after ? i - 1 : i);
    }
    if (i == n) break;
    guard_begin = guard_end + call.bytes[i];
    if (access[i] != Access::Read || call.bytes[i] == 0) continue;
    if (std::memcmp(copies[i], call.buffers[i], call.bytes[i]) != 0) {
      return fmt::format("changed binding {}, which it may only read", i);
    }
  }
  return {};
}

std::string GuardedKernel::run(kernels::CpuKernel kernel, const kernels::KernelCall& call,
                               std::span<const Access> access) {
  for (const int turn : {0, 1}) {
    const std::string problem = run_once(kernel, call, access, turn == 1, &arenas_[turn]);
    if (!problem.empty()) return problem;
  }
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    if (access[i] == Access::Read) continue;
    const size_t place = place_of(call, i);
    const size_t at = first_doubtful(arenas_[0].first + place, arenas_[1].first + place,
                                     call.bytes[i], access[i] == Access::Write);
    if (at == call.bytes[i]) continue;
    return fmt::format(
        "left in byte {} of binding {} what depends on memory that it may not read: {}", at, i,
        access[i] == Access::Write ? "what the binding held before, or what lies around a binding"
                                   : "what lies around a binding");
  }
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    if (access[i] == Access::Read) continue;
    const size_t place = place_of(call, i);
    copy_written(call.buffers[i], arenas_[0].first + place, arenas_[1].first + place,
                 call.bytes[i]);
  }
  return {};
}

}  // namespace millrace::simulated
