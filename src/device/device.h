// Device: the one interface between the tensor facade and whatever runs kernels.
//
// A device is an in-order asynchronous queue. Every verb but those ending in `_blocking` returns
// before the work ran. The order of results is the order of the calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/source_location.h"
#include "device/wait_ledger.h"
#include "kernels/kernel_id.h"

namespace millrace {

/// A place on the device's timeline. Points grow; a point is passed when all before it has run.
using Point = uint64_t;

/// A block of device memory. 0 names none.
struct BufferId {
  uint32_t value = 0;
  explicit operator bool() const { return value != 0; }
  bool operator==(const BufferId&) const = default;
};

/// A byte range of a buffer.
struct Slice {
  BufferId buffer;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

enum class Access : uint8_t { Read = 1, Write = 2, ReadWrite = 3 };

/// A range that a launch reads, writes, or both.
struct Binding {
  Slice slice;
  Access access;
};

/// One kernel launch. `threads` is an upper bound known to the host; where `count` is set (a u32 in
/// device memory), the kernel runs min(threads, count) work items.
struct Launch {
  KernelId kernel;
  uint64_t threads = 0;
  Slice count = {};
  std::span<const Binding> bindings = {};
  std::span<const std::byte> params = {};
  SourceLocation site = SourceLocation::current();
};

/// What a download leaves on the host; pooled by its device (ticket_pool.h).
class TicketState;

/// A value that will arrive: the bytes of a range as they were at the download's place in queue
/// order, even if the range is overwritten or freed later. Copies share the value, and may outlive
/// the device. A ticket of work that a closing device dropped never becomes ready.
class Ticket {
 public:
  Ticket() = default;
  /// Takes over one reference to `state`.
  explicit Ticket(TicketState* state) : state_(state) {}
  Ticket(const Ticket& other);
  Ticket(Ticket&& other) noexcept : state_(other.state_) { other.state_ = nullptr; }
  Ticket& operator=(Ticket other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Ticket();
  explicit operator bool() const { return state_ != nullptr; }
  /// True once the bytes are there. Never waits.
  bool ready() const;
  /// The bytes; only once ready().
  std::span<const std::byte> bytes() const;
  /// The timeline point after which the ticket is ready.
  Point point() const;
  /// The first element of the bytes as T; only once ready().
  template <class T>
  T as() const {
    return *reinterpret_cast<const T*>(bytes().data());
  }

 private:
  TicketState* state_ = nullptr;
};

/// What a device is, for people and for choosing.
struct DeviceInfo {
  std::string id = {};      // "cpu", "vulkan:0", "cuda:0", "simulated"
  std::string name = {};    // processor or card
  std::string driver = {};  // instruction set, or driver and version
  uint64_t memory_bytes = 0;
  int threads = 0;        // cpu only
  bool software = false;  // a graphics driver that runs on the processor; "auto" never takes it
  bool partial = false;   // this build lacks some kernels for it; "auto" never takes it
};

/// Device memory in use.
struct MemoryStats {
  uint64_t in_use_bytes = 0;
  uint64_t peak_in_use_bytes = 0;
  uint64_t reserved_bytes = 0;  // in use, in the pool, and staging
  uint64_t peak_reserved_bytes = 0;
  uint64_t limit_bytes = 0;    // of the pool and, where they share memory with it, staging
  uint64_t staging_bytes = 0;  // host memory that transfers go through, now
  struct Kind {
    std::string label;
    uint64_t bytes = 0;
    uint64_t peak_bytes = 0;
  };
  std::vector<Kind> by_label;
};

/// How busy the device was; differences of two calls give a span's figures.
struct QueueStats {
  uint64_t launches = 0;
  uint64_t busy_ns = 0;  // time spent running commands
  uint64_t dry_ns = 0;   // time between commands with nothing queued
  uint64_t queued = 0;   // commands queued and not yet finished, now
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  /// Memory for `bytes` (>= 1), contents undefined, 256-byte aligned. `label` (a literal) groups it
  /// in MemoryStats. Error: OutOfMemory, with what was asked and what is in use.
  virtual Result<BufferId> allocate(uint64_t bytes, const char* label) = 0;
  /// Gives `buffer` back at any time; work already queued may still use it.
  virtual void release(BufferId buffer) = 0;

  /// Copies `bytes` aside and queues their transfer into `to` (same size); `bytes` may be reused on
  /// return. Never waits for earlier uses of `to`.
  virtual Result<void> upload(Slice to, std::span<const std::byte> bytes) = 0;
  /// Queues a snapshot of `from`. Served at once when no queued work writes `from`.
  virtual Result<Ticket> download(Slice from) = 0;
  /// Queues a kernel. A launch of 0 threads (or whose count is 0) runs nothing.
  virtual Result<void> launch(const Launch& launch) = 0;
  /// Queues a copy between ranges of equal size that do not overlap.
  virtual Result<void> copy(Slice to, Slice from) = 0;
  /// Queues a fill with a repeated 32-bit pattern; offset and bytes are multiples of 4.
  virtual Result<void> fill(Slice to, uint32_t pattern) = 0;

  /// Closes the work queued so far as a batch and returns its point on the timeline.
  virtual Point submit() = 0;
  /// The newest point that has passed. Never waits.
  virtual Point poll() = 0;
  /// Stops this thread until `point` has passed, and counts it as a host wait. Errors: a fault of
  /// the device (once, oldest first, with the kernel and the site that queued it).
  virtual Result<void> wait_blocking(Point point, const WaitSite& site) = 0;

  virtual WaitLedger& ledger() = 0;
  virtual MemoryStats memory() const = 0;
  /// From now on allocate() fails rather than reserve more than `bytes` in all; what is reserved
  /// already stays.
  virtual void limit_memory(uint64_t bytes) = 0;
  virtual QueueStats queue() const = 0;

  /// From now on what the device does goes into `trace`, which must outlive the device; null ends
  /// that. Set it while nothing is queued. Waits are recorded for every device; one that knows when
  /// its commands ran overrides this to record them too.
  virtual void set_trace(TraceRecorder* trace) { ledger().set_trace(trace); }
};

/// Opens a device by id ("cpu", "cpu:4" for four threads, "auto"). Error: Usage, with the ids there
/// are.
Result<std::unique_ptr<Device>> open_device(const std::string& id);
/// The devices of this machine, best first.
std::vector<DeviceInfo> list_devices();

/// What a backend registers: its name and how to list and open its devices.
struct Backend {
  const char* name;
  std::vector<DeviceInfo> (*list)();
  /// `argument` is what follows "name:" in the id, or empty.
  Result<std::unique_ptr<Device>> (*open)(const std::string& argument);
};

/// Makes a backend known to open_device and list_devices. Called by a static initialiser of the
/// backend's library, which executables link whole; `backend` must live as long as the program.
bool register_backend(const Backend* backend);

/// Wraps `device` in argument checks: live buffers, bounds, declared binding count, access and
/// parameter size of the kernel's row, alignment, and writes that overlap another binding of the
/// same launch.
std::unique_ptr<Device> make_checked(std::unique_ptr<Device> device);

}  // namespace millrace
