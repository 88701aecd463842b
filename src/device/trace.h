// TraceRecorder: what the host and the device did and when, kept in memory and written as a trace
// that Perfetto and Chrome open.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/source_location.h"

namespace millrace {

/// A row of the picture. The spans of one track do not overlap. Further tracks come from
/// add_track().
enum class TraceTrack : uint16_t {
  Device,    // commands as the device ran them
  Waits,     // stops of the host
  Recorded,  // transactions recorded by the host
  Accepted,  // transactions that the gate let through, and refusals
  Uploads,   // bytes copied aside by the host
  Phases,    // loading, evaluation, saving
  kFixed
};

/// A number that belongs to an event; no name, no number.
struct TraceNumber {
  const char* name = nullptr;
  double value = 0;
};

/// What else to show of an event. All texts are literals or come from intern().
struct TraceDetails {
  TraceNumber number = {}, second = {};
  const char* reason = nullptr;
  const char* file = nullptr;  // with `line`: the place in the source behind the event
  uint32_t line = 0;

  static TraceDetails at(const SourceLocation& site) {
    return {{}, {}, nullptr, site.file_name(), static_cast<uint32_t>(site.line())};
  }
};

/// Thread-safe. Recording neither allocates nor waits for the device: events go into a buffer of a
/// fixed size, whose memory is first touched when it is used. What comes after it is full is
/// counted and dropped.
class TraceRecorder {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kDefaultLimit = size_t{1} << 20;

  /// Keeps up to `limit` events.
  explicit TraceRecorder(size_t limit = kDefaultLimit);

  /// Something that took time. `name`: a literal or from intern().
  void span(TraceTrack track, const char* name, Clock::time_point begin, Clock::time_point end,
            const TraceDetails& details = {});
  /// Something that happened now.
  void instant(TraceTrack track, const char* name, const TraceDetails& details = {});

  /// A new row, called `name` and a number if there are several of that name.
  TraceTrack add_track(const char* name);
  /// A copy of `text` that lives as long as the recorder; equal texts share one. Allocates.
  const char* intern(std::string_view text);

  /// How long the device's commands of one name took together.
  struct DeviceTotal {
    std::string name;
    uint64_t count = 0, ns = 0;
  };
  /// Of every name on the device's track, by name.
  std::vector<DeviceTotal> device_totals() const;
  /// Events that found no room.
  uint64_t dropped() const;
  /// The trace so far as JSON: an object whose traceEvents have times in us since the recorder was
  /// made, and whose otherData counts what was dropped.
  std::string to_json() const;

 private:
  struct Event {
    const char* name;
    uint64_t begin_ns, end_ns;  // equal for an instant with `is_span` off
    TraceDetails details;
    TraceTrack track;
    bool is_span;
  };
  // Without constructors, so that making the buffer touches none of it.
  struct alignas(Event) Room {
    std::byte bytes[sizeof(Event)];
  };

  void add(const Event& event);
  uint64_t since_origin(Clock::time_point time) const;

  const Clock::time_point origin_ = Clock::now();
  const size_t limit_;
  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<Room[]> room_;
  size_t n_events_ = 0;
  uint64_t dropped_ = 0;
  std::vector<std::string> tracks_;
  std::set<std::string, std::less<>> texts_;
};

/// A span from its construction to its end; nothing at all if `trace` is null.
class TraceSpan {
 public:
  TraceSpan(TraceRecorder* trace, TraceTrack track, const char* name,
            const TraceDetails& details = {})
      : trace_(trace), track_(track), name_(name), details_(details) {
    if (trace_) begin_ = TraceRecorder::Clock::now();
  }
  ~TraceSpan() {
    if (trace_) trace_->span(track_, name_, begin_, TraceRecorder::Clock::now(), details_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  TraceRecorder* trace_;
  TraceTrack track_;
  const char* name_;
  TraceDetails details_;
  TraceRecorder::Clock::time_point begin_;
};

/// Proves now that write_trace() to `path` can work later, leaving nothing behind but parent
/// folders. Error: Output.
Result<void> check_trace_path(const std::filesystem::path& path);
/// Writes the trace aside and renames it to `path`. Error: Output.
Result<void> write_trace(const TraceRecorder& trace, const std::filesystem::path& path);

}  // namespace millrace
