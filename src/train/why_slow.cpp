// Shares of the time, their thresholds, and what to tell.
#include "train/why_slow.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace {
namespace {

// Below these shares of the time a cause is not worth telling.
constexpr double kDecodeShare = 0.05;
constexpr double kWaitShare = 0.02;
constexpr double kReloadShare = 0.05;
constexpr double kDryShare = 0.02;  // the bar on device_dry_fraction

constexpr double kMiB = 1 << 20;

struct Cause {
  SlowVerdict verdict;
  double share;
  double threshold;
};

/// "--image-cache-bytes 913M keeps all of them" for what does not fit yet.
std::string cache_advice(const SlowFigures& f) {
  if (f.all_resident) return "train at a smaller size (-r 2)";
  return fmt::format(
      "--image-cache-bytes {:.0f}M would keep all of them; or train at a smaller "
      "size (-r 2)",
      static_cast<double>(f.photograph_bytes) / kMiB + 1);
}

std::string decode_sentence(const SlowFigures& f, double share) {
  return fmt::format("{:.0f} % of the time went into waiting for photographs to be decoded; {}",
                     100 * share, cache_advice(f));
}

std::string wait_sentence(const SlowFigures& f, double share) {
  return fmt::format(
      "the host stopped for {:.0f} % of the time, most of it at {} ({}, {} times), where it should "
      "never stop; please report it with a trace (--trace FILE)",
      100 * share, f.top_site, f.top_reason, f.top_count);
}

std::string memory_sentence(const SlowFigures& f, double share) {
  return fmt::format(
      "{:.0f} % of the time went into putting photographs onto the device again, {:.1f} a step; {}",
      100 * share, static_cast<double>(f.n_reloads) / static_cast<double>(f.n_steps),
      cache_advice(f));
}

std::string pacing_sentence(const SlowFigures& f) {
  const double dry = 100 * f.dry_seconds / f.seconds;
  if (2 * f.n_pacing_waits >= f.n_steps) {
    return fmt::format(
        "the device had nothing queued for {:.1f} % of the time although the host waited for it: "
        "{:.1f} steps of run-ahead are too few for steps this short; train at a larger size, or "
        "stop what else uses the processor",
        dry, f.queued_steps);
  }
  return fmt::format(
      "the device had nothing queued for {:.1f} % of the time because the host records steps more "
      "slowly than the device runs them; stop what else uses the processor{}",
      dry, f.n_threads > 1 ? ", or leave it a core (--threads)" : "");
}

std::string device_sentence(const SlowFigures& f) {
  const std::string threads =
      f.n_threads > 0 ? fmt::format(" on {} thread{}", f.n_threads, f.n_threads > 1 ? "s" : "")
                      : "";
  return fmt::format(
      "the device computed for {:.1f} % of the time{}; a smaller size (-r 2), fewer Gaussians "
      "(--max-cap) or a faster device would help",
      100 * std::max(0.0, 1 - f.dry_seconds / f.seconds), threads);
}

}  // namespace

const char* to_string(SlowVerdict verdict) {
  switch (verdict) {
    case SlowVerdict::Unknown:
      return "unknown";
    case SlowVerdict::DecodeBound:
      return "decode-bound";
    case SlowVerdict::HostWait:
      return "host-wait";
    case SlowVerdict::MemoryBound:
      return "memory-bound";
    case SlowVerdict::Pacing:
      return "pacing";
    case SlowVerdict::DeviceBound:
      return "device-bound";
  }
  return "unknown";
}

std::string WhySlow::line() const {
  if (verdict == SlowVerdict::Unknown) return sentence;
  return fmt::format("{}: {}", to_string(verdict), sentence);
}

WhySlow why_slow(const SlowFigures& f) {
  if (f.n_steps == 0 || f.seconds <= 0) return {SlowVerdict::Unknown, "too few steps to say"};
  // While the host is busy with these, the device may run dry; only the rest is the queue's fault.
  const double explained = f.decode_seconds + f.wait_seconds + f.reload_seconds;
  const double dry = std::max(0.0, f.dry_seconds - explained);
  const Cause causes[] = {
      {SlowVerdict::DecodeBound, f.decode_seconds / f.seconds, kDecodeShare},
      {SlowVerdict::HostWait, f.wait_seconds / f.seconds, kWaitShare},
      {SlowVerdict::MemoryBound, f.reload_seconds / f.seconds, kReloadShare},
      {SlowVerdict::Pacing, dry / f.seconds, kDryShare},
  };
  Cause top = {SlowVerdict::DeviceBound, 0, 0};
  for (const Cause& cause : causes) {
    if (cause.share > cause.threshold && cause.share > top.share) top = cause;
  }
  switch (top.verdict) {
    case SlowVerdict::DecodeBound:
      return {top.verdict, decode_sentence(f, top.share)};
    case SlowVerdict::HostWait:
      return {top.verdict, wait_sentence(f, top.share)};
    case SlowVerdict::MemoryBound:
      return {top.verdict, memory_sentence(f, top.share)};
    case SlowVerdict::Pacing:
      return {top.verdict, pacing_sentence(f)};
    default:
      return {SlowVerdict::DeviceBound, device_sentence(f)};
  }
}

}  // namespace millrace
