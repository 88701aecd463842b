// Batch: commands in the driver between two events, and the pool those events come from.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cuda/context.h"
#include "device/ticket_pool.h"
#include "device/trace.h"

namespace millrace::cuda {

/// Events that are used again. All of them take times, and a wait for one sleeps.
class EventPool {
 public:
  explicit EventPool(const CudaContext* context);
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  /// Records an event in the stream; null with `status` set where that failed.
  Event record(Status* status);
  /// Takes back an event that nobody waits for or reads any more; null does nothing.
  void give_back(Event event);

 private:
  const CudaContext* context_;
  std::vector<Event> free_;
  std::vector<Event> all_;
};

/// A download whose bytes are in pinned memory once its batch has passed.
struct Readback {
  TicketState* ticket = nullptr;  // one reference
  const std::byte* from = nullptr;
};

/// A command between events of its own, for the trace.
struct TimedCommand {
  Event begin = nullptr;
  Event end = nullptr;
  const char* name = nullptr;
  TraceDetails details;
};

/// Commands up to last_point of the timeline. Used again, with its lists' memory.
struct Batch {
  Point last_point = 0;
  uint32_t n_commands = 0;
  uint32_t n_calls = 0;  // into the driver
  Event begin = nullptr;
  Event end = nullptr;
  std::vector<Readback> readbacks;
  std::vector<TimedCommand> timed;
};

}  // namespace millrace::cuda
