// CommandQueue: the recorded commands of the CPU device, from the recording thread to the worker.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.h"
#include "device/ticket_pool.h"

namespace millrace::cpu {

constexpr size_t kMaxBindings = 24;
constexpr size_t kMaxParamsBytes = 512;

/// One command with its arguments inline.
struct Command {
  enum class Kind : uint8_t { Kernel, Copy, Fill, Snapshot };
  Kind kind = Kind::Kernel;
  uint8_t n_bindings = 0;
  KernelId kernel = {};
  uint32_t pattern = 0;
  uint64_t threads = 0;
  const uint32_t* count = nullptr;
  TicketState* ticket = nullptr;  // Snapshot: one reference
  SourceLocation site;
  std::array<std::byte*, kMaxBindings> buffers;  // Copy: to, from. Fill: to. Snapshot: from
  std::array<uint64_t, kMaxBindings> bytes;
  alignas(16) std::array<std::byte, kMaxParamsBytes> params;
};

/// A first-in first-out list of commands in chunks that are used again. One thread at a time
/// records, one thread executes; neither takes a lock. The n-th command has point n.
class CommandQueue {
 public:
  CommandQueue();

  // Recording side.
  /// The slot of the next command; publish() hands it to the worker. `finished` is a passed point.
  Command& next_slot(Point finished);
  Point publish();
  Point last_queued() const { return queued_.load(std::memory_order_acquire); }

  // Executing side.
  /// The oldest command not yet taken. There must be one.
  Command& take();

 private:
  static constexpr size_t kChunk = 64;
  static constexpr size_t kMaxSpare = 32;
  // The commands of a few steps with all that may follow them, so that recording allocates nothing.
  static constexpr size_t kFirstSpare = 6;
  struct Chunk {
    std::array<Command, kChunk> commands;
    std::unique_ptr<Chunk> next;
    Point first_point = 0;
  };

  void add_chunk(Point finished);

  std::unique_ptr<Chunk> oldest_;  // recording side; the executing side is here or later
  Chunk* newest_;
  size_t n_in_newest_ = 0;
  std::vector<std::unique_ptr<Chunk>> spare_;
  std::atomic<Point> queued_ = 0;

  Chunk* current_;  // executing side
  size_t n_taken_ = 0;
};

}  // namespace millrace::cpu
