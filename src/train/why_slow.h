// WhySlow: what held a training run up, from the figures of its steady steps.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

enum class SlowVerdict : uint8_t {
  Unknown,
  DecodeBound,
  HostWait,
  MemoryBound,
  Pacing,
  DeviceBound
};
/// "decode-bound" and so on; "unknown".
const char* to_string(SlowVerdict verdict);

/// What was measured over the steady steps. Times are of the host thread, but for dry_seconds.
struct SlowFigures {
  uint64_t n_steps = 0;
  double seconds = 0;
  double dry_seconds = 0;  // the device had nothing queued
  // Waits, by reason: Decode, Pacing, and all others together.
  double decode_seconds = 0;
  double wait_seconds = 0;
  uint64_t n_decode_waits = 0, n_waits = 0, n_pacing_waits = 0;
  std::string top_site = {}, top_reason = {};  // the longest of the others
  uint64_t top_count = 0;
  // Photographs put onto the device again because they do not all fit, decoding apart.
  double reload_seconds = 0;
  uint64_t n_reloads = 0;
  bool all_resident = true;
  uint64_t photograph_bytes = 0;  // that would have to fit
  double queued_steps = 0;        // mean, runner.h
  int n_threads = 0;              // of a cpu device, else 0
};

/// A verdict and one sentence for the user: what was measured and what to do.
struct WhySlow {
  SlowVerdict verdict = SlowVerdict::Unknown;
  std::string sentence;
  /// "verdict: sentence".
  std::string line() const;
};

/// Of the causes above their thresholds the one with the largest share of the time; device-bound if
/// there is none.
WhySlow why_slow(const SlowFigures& figures);

}  // namespace millrace
