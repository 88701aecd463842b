// The trace's buffer and its JSON.
#include "device/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <new>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "device/wait_ledger.h"

namespace millrace {
namespace {

constexpr const char* kFixedTracks[] = {"device",   "host waits", "recorded",
                                        "accepted", "uploads",    "phases"};
static_assert(std::size(kFixedTracks) == static_cast<size_t>(TraceTrack::kFixed));

/// Appends `text` as a JSON string; file names need not be UTF-8, JSON must.
void append_string(std::string& json, std::string_view text) {
  json += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_args(std::string& json, const TraceDetails& details) {
  const char* separator = "";
  const auto key = [&](const char* name) {
    json += separator;
    append_string(json, name);
    json += ':';
    separator = ",";
  };
  json += "{";
  for (const TraceNumber& number : {details.number, details.second}) {
    if (number.name == nullptr) continue;
    key(number.name);
    // JSON knows no NaN. 17 digits keep whole numbers whole.
    json += std::isfinite(number.value) ? fmt::format("{:.17g}", number.value) : "null";
  }
  if (details.reason) {
    key("reason");
    append_string(json, details.reason);
  }
  if (details.file) {
    key("site");
    append_string(json, source_place(details.file, details.line));
  }
  json += "}";
}

std::string microseconds(uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

/// Track n is thread n + 1 of one process: viewers hide thread 0.
uint32_t thread_of(size_t track) { return static_cast<uint32_t>(track) + 1; }

}  // namespace

TraceRecorder::TraceRecorder(size_t limit)
    : limit_(limit),
      room_(std::make_unique_for_overwrite<Room[]>(limit)),
      tracks_(std::begin(kFixedTracks), std::end(kFixedTracks)) {}

uint64_t TraceRecorder::since_origin(Clock::time_point time) const {
  if (time <= origin_) return 0;
  return static_cast<uint64_t>(std::chrono::nanoseconds(time - origin_).count());
}

void TraceRecorder::add(const Event& event) {
  std::lock_guard lock(mutex_);
  if (n_events_ == limit_) {
    ++dropped_;
    return;
  }
  new (&room_[n_events_++]) Event(event);
}

void TraceRecorder::span(TraceTrack track, const char* name, Clock::time_point begin,
                         Clock::time_point end, const TraceDetails& details) {
  add({name, since_origin(begin), since_origin(end), details, track, true});
}

void TraceRecorder::instant(TraceTrack track, const char* name, const TraceDetails& details) {
  const uint64_t now = since_origin(Clock::now());
  add({name, now, now, details, track, false});
}

TraceTrack TraceRecorder::add_track(const char* name) {
  std::lock_guard lock(mutex_);
  size_t n_before = 0;
  for (const std::string& track : tracks_) n_before += track.starts_with(name) ? 1 : 0;
  tracks_.push_back(fmt::format("{} {}", name, n_before + 1));
  return static_cast<TraceTrack>(tracks_.size() - 1);
}

const char* TraceRecorder::intern(std::string_view text) {
  std::lock_guard lock(mutex_);
  const auto found = texts_.find(text);
  return (found != texts_.end() ? found : texts_.emplace(text).first)->c_str();
}

std::vector<TraceRecorder::DeviceTotal> TraceRecorder::device_totals() const {
  std::lock_guard lock(mutex_);
  std::map<std::string_view, DeviceTotal> totals;
  for (size_t i = 0; i < n_events_; ++i) {
    const Event& event = *std::launder(reinterpret_cast<const Event*>(&room_[i]));
    if (event.track != TraceTrack::Device || !event.is_span) continue;
    DeviceTotal& total = totals[event.name];
    ++total.count;
    total.ns += event.end_ns - event.begin_ns;
  }
  std::vector<DeviceTotal> list;
  for (auto& [name, total] : totals) {
    total.name = name;
    list.push_back(std::move(total));
  }
  return list;
}

uint64_t TraceRecorder::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

std::string TraceRecorder::to_json() const {
  std::lock_guard lock(mutex_);
  std::string json;
  json.reserve(256 + 144 * n_events_);
  const auto out = std::back_inserter(json);
  fmt::format_to(out,
                 "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"events\":{},\"event_limit\":{},"
                 "\"dropped_events\":{}}},\"traceEvents\":[\n"
                 "{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{{\"name\":"
                 "\"millrace\"}}}}",
                 n_events_, limit_, dropped_);
  for (size_t track = 0; track < tracks_.size(); ++track) {
    const uint32_t thread = thread_of(track);
    fmt::format_to(out,
                   ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\",\"args\":"
                   "{{\"name\":",
                   thread);
    append_string(json, tracks_[track]);
    fmt::format_to(out,
                   "}}}},\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_sort_index\","
                   "\"args\":{{\"sort_index\":{}}}}}",
                   thread, thread);
  }
  for (size_t i = 0; i < n_events_; ++i) {
    const Event& event = *std::launder(reinterpret_cast<const Event*>(&room_[i]));
    json += ",\n{\"name\":";
    append_string(json, event.name);
    fmt::format_to(out, ",\"pid\":1,\"tid\":{},\"ts\":{}",
                   thread_of(static_cast<size_t>(event.track)), microseconds(event.begin_ns));
    if (event.is_span) {
      fmt::format_to(out, ",\"ph\":\"X\",\"dur\":{}", microseconds(event.end_ns - event.begin_ns));
    } else {
      json += ",\"ph\":\"i\",\"s\":\"t\"";
    }
    json += ",\"args\":";
    append_args(json, event.details);
    json += '}';
  }
  json += "\n]}\n";
  return json;
}

Result<void> check_trace_path(const std::filesystem::path& path) {
  std::error_code ec;
  if (std::filesystem::exists(path, ec) && !std::filesystem::is_regular_file(path, ec)) {
    return Error{ErrorCode::Output,
                 fmt::format("cannot write the trace to {}: it is not a regular file; give --trace "
                             "a file name",
                             path.string())};
  }
  std::filesystem::path probe = path;
  probe += ".millrace-write-test";
  const Result<void> written = write_file_atomically(probe, "ok");
  if (!written.ok()) {
    return Error{ErrorCode::Output, "the trace (--trace): " + written.error().message};
  }
  std::filesystem::remove(probe, ec);
  return {};
}

Result<void> write_trace(const TraceRecorder& trace, const std::filesystem::path& path) {
  return write_file_atomically(path, trace.to_json());
}

}  // namespace millrace
