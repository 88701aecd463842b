// The simulated device: the CPU kernels behind a clock under test control, with checks and faults
// to order. Everything runs on the calling thread, so that a test is the same each time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "kernels/kernel.h"

namespace millrace::simulated {

/// When queued commands run.
enum class Clock : uint8_t {
  Hold,       // when the test says so, or as far as a host wait asks for
  Stall,      // when the test says so; a host wait for more is reported as a deadlock
  Lag,        // a number of batches behind submit(), or as far as a host wait asks for
  Random,     // a seeded number of them at each device call, or as far as a host wait asks for
  Immediate,  // as they are queued
};

/// What the device id says after "simulated:", fields separated by commas, all optional.
struct Options {
  Clock clock = Clock::Hold;  // hold, stall, lag=BATCHES, random=SEED or immediate
  uint64_t lag_batches = 0;
  uint64_t seed = 0;
  uint64_t memory_bytes = uint64_t{1} << 30;   // memory=BYTES: limit of device memory
  uint64_t staging_bytes = uint64_t{1} << 20;  // staging=BYTES: size of the staging ring
  /// poison: fills fresh blocks with a NaN pattern, recycled ones when the device has done what it
  /// was to do with them.
  bool poison = false;
  /// host: every access of the host (at-once uploads and downloads, staging, memory given back) is
  /// compared with the exact ranges of the commands that have not run.
  bool check_host = false;
  /// ranges: kernels run twice on guarded private copies of their bindings (guarded_kernel.h).
  bool check_ranges = false;
  /// watchdog=MS: ends the program, with a report, once the host waits for so long where the ledger
  /// does not see it (watchdog.h). 0: no watchdog.
  uint64_t watchdog_ms = 0;
};

/// Parses `text`; "checks" stands for poison, host and ranges. Error: Usage, naming the field.
Result<Options> parse_options(const std::string& text);

/// The word that poisons memory: a NaN as float32, far out of range as an index.
constexpr uint32_t kPoison = 0xfff0dead;

/// How a device came to its end.
struct ClosingReport {
  bool closed = false;
  uint64_t ran = 0;                           // commands that ran while it was closed
  uint64_t dropped = 0;                       // commands that could never run
  std::vector<std::string> dropped_commands;  // the oldest ones, with their launch sites
  std::vector<std::string> leaks;             // buffers never released: label and bytes
  std::vector<WaitRecord> waits;
};

class Engine;

/// The test's hand on a device; may outlive it. Counts of commands include uploads that are queued,
/// copies, fills, snapshots and, with poison, the poisoning of a block still in use.
class Control {
 public:
  explicit Control(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  void set_clock(Clock clock);
  /// Runs the oldest `n` queued commands, or all there are; returns how many ran.
  uint64_t run(uint64_t n);
  uint64_t run_all();
  /// Commands that have run, and that wait to be run.
  uint64_t commands_run() const;
  std::vector<std::string> pending() const;

  /// The next `times` blocks asked of the system after `skip` more are refused; the pool's own
  /// retry belongs to the request that it serves. Requests that a free block serves are not
  /// counted.
  void refuse_memory(uint64_t skip = 0, uint64_t times = 1);
  /// The kernel that runs after `skip` more fails instead of running.
  void fail_kernel(uint64_t skip = 0);
  /// The device is lost when it comes to the command after `skip` more.
  void lose_device(uint64_t skip = 0);
  /// Runs `body` in place of a kernel of the table.
  void replace_kernel(KernelId kernel, kernels::CpuKernel body);
  /// Makes the device forget which work is in flight, so that the host check has a fault to find.
  void forget_hazards();

  /// What the checks found, oldest first. The first is also a fault of the device.
  std::vector<std::string> problems() const;
  ClosingReport closing() const;

 private:
  std::shared_ptr<Engine> engine_;
};

/// A device and the hand on it. Also open by id ("simulated:lag=3,checks") through open_device().
struct Opened {
  std::unique_ptr<Device> device;
  Control control;
};
Result<Opened> open_simulated(const Options& options);
/// The hand on the device opened last, by whatever way. There must have been one.
Control newest_control();

}  // namespace millrace::simulated
