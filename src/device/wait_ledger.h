// The wait ledger: the only place where the host thread may stop, and the record of every stop.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/source_location.h"

namespace millrace {

class TraceRecorder;

/// Why the host stopped.
enum class WaitReason : uint8_t {
  UserRead,
  Pacing,
  StagingFull,
  Decode,
  Replay,
  Resize,
  Shutdown,
  Test,
};
constexpr int kWaitReasonCount = 8;
const char* to_string(WaitReason reason);

/// "src/train/runner.cpp:66": a place in the source, below the source tree's root.
std::string source_place(const char* file, uint32_t line);

/// A place in the source that may stop the host, and why.
struct WaitSite {
  WaitReason reason;
  const char* name;  // a literal such as "trainer.pacing"
  SourceLocation where = SourceLocation::current();
};

/// One row of the ledger: all waits of one site for one reason.
struct WaitRecord {
  std::string site;   // name
  std::string where;  // file:line
  WaitReason reason;
  uint64_t count = 0;
  uint64_t blocked_ns = 0;
  uint64_t device_dry_ns = 0;  // how long the device had nothing queued meanwhile
};

/// Thread-safe record of host waits. Every host block of the program goes through wait_blocking().
class WaitLedger {
 public:
  /// Stops this thread until `done()` (called under `lock`) is true, and records the wait.
  /// A condition that already holds costs nothing and is not recorded.
  template <class Done>
  void wait_blocking(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                     Done done, const WaitSite& site) {
    if (done()) return;
    const auto begin = std::chrono::steady_clock::now();
    changed.wait(lock, done);
    record(site, begin);
  }

  /// As wait_blocking, giving up after `limit`; returns whether `done()` became true.
  template <class Done>
  bool wait_for_blocking(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                         Done done, std::chrono::milliseconds limit, const WaitSite& site) {
    if (done()) return true;
    const auto begin = std::chrono::steady_clock::now();
    const bool ok = changed.wait_for(lock, limit, done);
    record(site, begin);
    return ok;
  }

  /// Pacing may wait for timeline points up to `newest` from now on; without a call, for any.
  void limit_pacing(uint64_t newest) { pacing_limit_.store(newest, std::memory_order_relaxed); }
  /// How a wait of `site` for `point` is recorded: Pacing for a point past the limit is no Pacing
  /// but a UserRead, which every budget counts.
  WaitSite recorded_as(const WaitSite& site, uint64_t point) const {
    WaitSite counted = site;
    const bool past_limit = point > pacing_limit_.load(std::memory_order_relaxed);
    if (site.reason == WaitReason::Pacing && past_limit) counted.reason = WaitReason::UserRead;
    return counted;
  }

  /// Adds `ns` of a device with an empty queue to the last wait recorded for `site`.
  void add_device_dry(const WaitSite& site, uint64_t ns);

  /// All rows, in the order in which their sites first waited.
  std::vector<WaitRecord> records() const;
  /// Count and time of one row.
  struct Totals {
    uint64_t count = 0, blocked_ns = 0;
  };
  /// Replaces `totals` by those of records(), row by row. Allocates only where rows have come.
  void read_totals(std::vector<Totals>* totals) const;
  /// Waits so far for `reason`, over all sites.
  uint64_t count(WaitReason reason) const;
  /// Waits so far for every reason but Pacing.
  uint64_t count_except_pacing() const;

  /// From now on waits go into `trace` too, which must outlive the ledger; null ends that.
  void set_trace(TraceRecorder* trace) { trace_.store(trace, std::memory_order_release); }
  /// Where whatever has this ledger at hand records what it does; null unless a trace is wanted.
  TraceRecorder* trace() const { return trace_.load(std::memory_order_acquire); }

 private:
  void record(const WaitSite& site, std::chrono::steady_clock::time_point begin);
  /// The row of `site`, or nullptr. Allocates nothing: waits repeat every step.
  WaitRecord* find(const WaitSite& site);

  std::atomic<uint64_t> pacing_limit_ = UINT64_MAX;
  std::atomic<TraceRecorder*> trace_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<WaitRecord> records_;
  std::vector<WaitSite> sites_;  // of the rows
};

}  // namespace millrace
