// Execution of commands, faults and times.
#include "backends/cpu/cpu_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>

#include "device/trace.h"
#include "kernels/kernel.h"

namespace millrace::cpu {
namespace {

constexpr kernels::CpuKernel kKernels[] = {
#define MILLRACE_KERNEL(name, params, access) &kernels::name,
#include "kernels/table.inc"
#undef MILLRACE_KERNEL
};

void fill_pattern(std::byte* to, uint64_t bytes, uint32_t pattern) {
  if (pattern == (pattern & 0xffu) * 0x01010101u) {
    std::memset(to, static_cast<int>(pattern & 0xffu), bytes);
    return;
  }
  std::fill_n(reinterpret_cast<uint32_t*>(to), bytes / 4, pattern);
}

}  // namespace

CpuWorker::CpuWorker(CommandQueue* queue, Completion* completion, int threads, bool lazy)
    : queue_(queue),
      completion_(completion),
      allowed_(lazy ? 0 : UINT64_MAX),
      arena_(threads, 1),
      loop_([this] { drain(); }) {
  const auto n = static_cast<size_t>(threads);
  if (n > std::thread::hardware_concurrency()) {
    more_threads_.emplace(tbb::global_control::max_allowed_parallelism, n);
  }
}

void CpuWorker::allow(Point point) {
  Point before = allowed_.load();
  while (before < point && !allowed_.compare_exchange_weak(before, point)) {
  }
  if (before < point) wake();
}

bool CpuWorker::more() const {
  return finished_ < std::min(queue_->last_queued(), allowed_.load(std::memory_order_acquire));
}

void CpuWorker::drain() {
  if (!more()) return;
  enter(State::Busy);
  arena_.execute([this] { run_commands(); });
  enter(finished_ < queue_->last_queued() ? State::Held : State::Dry);
}

void CpuWorker::run_commands() {
  while (more()) {
    Command& command = queue_->take();
    if (TraceRecorder* trace = trace_.load(std::memory_order_acquire)) {
      execute_traced(command, *trace);
    } else {
      execute(command);
    }
    completion_->advance(++finished_);
  }
}

void CpuWorker::execute_traced(Command& command, TraceRecorder& trace) {
  const Clock::time_point begin = Clock::now();
  execute(command);
  const Clock::time_point end = Clock::now();
  if (command.kind == Command::Kind::Kernel) {
    TraceDetails details = TraceDetails::at(command.site);
    details.number = {"threads", static_cast<double>(command.threads)};
    trace.span(TraceTrack::Device, kernel_row(command.kernel).name, begin, end, details);
    return;
  }
  const char* name = command.kind == Command::Kind::Copy   ? "copy"
                     : command.kind == Command::Kind::Fill ? "fill"
                                                           : "snapshot";
  trace.span(TraceTrack::Device, name, begin, end,
             {.number = {"bytes", static_cast<double>(command.bytes[0])}});
}

void CpuWorker::execute(Command& command) {
  const bool skipped = abandoned_ || stopped_;
  if (stopped_ && command.kind != Command::Kind::Snapshot) ++suppressed_;
  switch (command.kind) {
    case Command::Kind::Kernel:
      if (!skipped) run_kernel(command);
      break;
    case Command::Kind::Copy:
      if (!skipped) std::memcpy(command.buffers[0], command.buffers[1], command.bytes[0]);
      break;
    case Command::Kind::Fill:
      if (!skipped) fill_pattern(command.buffers[0], command.bytes[0], command.pattern);
      break;
    case Command::Kind::Snapshot:
      if (!abandoned_) {
        std::memcpy(command.ticket->storage().data(), command.buffers[0], command.bytes[0]);
        command.ticket->set_ready();
      }
      command.ticket->drop_reference();
      break;
  }
}

void CpuWorker::run_kernel(const Command& command) {
  uint64_t threads = command.threads;
  if (command.count != nullptr) threads = std::min<uint64_t>(threads, *command.count);
  if (threads == 0) return;
  const kernels::KernelCall call{
      .threads = threads,
      .params = command.params.data(),
      .buffers = {command.buffers.data(), command.n_bindings},
      .bytes = {command.bytes.data(), command.n_bindings},
  };
  try {
    kKernels[static_cast<size_t>(command.kernel)](call);
  } catch (const Exception& exception) {
    stop_device(command, exception.error().code, exception.what());
  } catch (const std::bad_alloc&) {
    stop_device(command, ErrorCode::OutOfMemory, "the host's memory is used up");
  } catch (const std::exception& exception) {
    stop_device(command, ErrorCode::Internal, exception.what());
  }
}

void CpuWorker::stop_device(const Command& command, ErrorCode code, const char* what) {
  std::lock_guard lock(mutex_);
  fault_ = {code,
            fmt::format("kernel {} queued at {}:{} failed: {}", kernel_row(command.kernel).name,
                        command.site.file_name(), command.site.line(), what)};
  stopped_ = true;
}

std::optional<Error> CpuWorker::take_fault() {
  if (!stopped_ || reported_) return {};
  std::lock_guard lock(mutex_);
  if (reported_.exchange(true)) return {};
  const uint64_t suppressed = suppressed_;
  if (suppressed == 0) return fault_;
  return Error{fault_.code, fmt::format("{}; {} commands queued after it had no effect",
                                        fault_.message, suppressed)};
}

std::optional<Error> CpuWorker::reported_fault() const {
  if (!reported_) return {};
  std::lock_guard lock(mutex_);
  return Error{fault_.code, "the device has stopped for good: " + fault_.message};
}

void CpuWorker::enter(State state) {
  std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  const auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(now - since_).count());
  if (state_ == State::Busy) busy_ns_ += ns;
  if (state_ == State::Dry) dry_ns_ += ns;
  state_ = state;
  since_ = now;
}

void CpuWorker::add_times(QueueStats* stats) const {
  std::lock_guard lock(mutex_);
  const auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - since_).count());
  stats->busy_ns += busy_ns_ + (state_ == State::Busy ? ns : 0);
  stats->dry_ns += dry_ns_ + (state_ == State::Dry ? ns : 0);
}

}  // namespace millrace::cpu
