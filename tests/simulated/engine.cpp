// Engine: the clock, execution, checks and faults.
#include "simulated/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/philox.h"
#include "device/ticket_pool.h"

namespace millrace::simulated {
namespace {

constexpr kernels::CpuKernel kKernels[] = {
#define MILLRACE_KERNEL(name, params, access) &kernels::name,
#include "kernels/table.inc"
#undef MILLRACE_KERNEL
};

bool overlap(const Range& a, const Range& b) {
  return a.bytes > 0 && b.bytes > 0 && a.first < b.first + b.bytes && b.first < a.first + a.bytes;
}

// How many commands the random clock runs at device call `tick`: often none, sometimes many.
uint64_t random_progress(uint64_t seed, uint64_t tick) {
  const auto words = philox(seed, static_cast<uint32_t>(tick), RandomPurpose::TestCapacity, 0);
  if (words[0] % 2 == 0) return 0;
  return words[1] % 8 == 0 ? words[2] % 64 : words[2] % 4;
}

}  // namespace

std::string describe(const Command& command) {
  if (command.kind != Command::Kind::Kernel) return command.name;
  return fmt::format("kernel {} queued at {}:{}", command.name, command.site.file_name(),
                     command.site.line());
}

Engine::Engine(const Options& given) : options(given) {
  std::copy(std::begin(kKernels), std::end(kKernels), kernels_.begin());
}

void Engine::replace_kernel(KernelId kernel, kernels::CpuKernel body) {
  kernels_[static_cast<size_t>(kernel)] = body;
}

void Engine::add(Command command) {
  commands_.push_back(std::move(command));
  ++queued_;
}

Point Engine::close_batch() {
  if (queued_ > last_batch_) batches_.push_back(last_batch_ = queued_);
  while (batches_.size() > options.lag_batches) {
    if (options.clock == Clock::Lag) run_to(batches_.front());
    batches_.pop_front();
  }
  return queued_;
}

void Engine::tick(bool is_poll) {
  ++ticks_;
  if (!is_poll) calls_.fetch_add(1, std::memory_order_relaxed);
  if (options.clock == Clock::Immediate) run_to(queued_);
  if (options.clock == Clock::Random) run(random_progress(options.seed, ticks_));
}

uint64_t Engine::run(uint64_t n) {
  n = std::min<uint64_t>(n, commands_.size());
  for (uint64_t i = 0; i < n; ++i) run_one();
  return n;
}

void Engine::run_one() {
  ++n_run_;
  Command& command = commands_.front();
  if (n_run_ == losing_command_ && !fault_) {
    lost_ = true;
    stop(ErrorCode::DeviceLost,
         fmt::format("the device was lost at command {}: {}", n_run_, describe(command)));
  }
  execute(command);
  commands_.pop_front();
  completion_.advance(passed() + 1);
}

void Engine::execute(Command& command) {
  if (command.kind == Command::Kind::Snapshot) {
    if (!lost_) {
      std::memcpy(command.ticket->storage().data(), command.ranges[0].first,
                  command.ranges[0].bytes);
      command.ticket->set_ready();
    }
    std::exchange(command.ticket, nullptr)->drop_reference();
    return;
  }
  if (fault_) {
    ++suppressed_;
    return;
  }
  const Range& to = command.ranges.empty() ? Range{} : command.ranges[0];
  switch (command.kind) {
    case Command::Kind::Kernel:
      arena_.execute([&] { run_kernel(command); });
      break;
    case Command::Kind::Copy:
      std::memcpy(to.first, command.ranges[1].first, to.bytes);
      break;
    case Command::Kind::Fill:
      std::fill_n(reinterpret_cast<uint32_t*>(to.first), to.bytes / 4, command.pattern);
      break;
    case Command::Kind::Snapshot:
      break;
  }
}

void Engine::run_kernel(const Command& command) {
  if (++n_kernels_ == failing_kernel_) {
    stop(ErrorCode::Internal, describe(command) + " failed: a fault was injected");
    return;
  }
  uint64_t threads = command.threads;
  if (command.count != nullptr) threads = std::min<uint64_t>(threads, *command.count);
  if (threads == 0) return;
  std::vector<std::byte*> buffers;
  std::vector<uint64_t> bytes;
  std::vector<Access> access;
  for (const Range& range : command.ranges) {
    buffers.push_back(range.first);
    bytes.push_back(range.bytes);
    access.push_back(range.access);
  }
  if (command.count != nullptr) {  // the last range, no binding
    buffers.pop_back();
    bytes.pop_back();
    access.pop_back();
  }
  const kernels::KernelCall call{
      .threads = threads, .params = command.params.data(), .buffers = buffers, .bytes = bytes};
  const kernels::CpuKernel kernel = kernels_[static_cast<size_t>(command.kernel)];
  try {
    if (!options.check_ranges) {
      kernel(call);
      return;
    }
    const std::string problem = guarded_.run(kernel, call, access);
    if (!problem.empty()) find_problem(describe(command) + " " + problem);
  } catch (const Exception& exception) {
    stop(exception.error().code, fmt::format("{} failed: {}", describe(command), exception.what()));
  } catch (const std::exception& exception) {
    stop(ErrorCode::Internal, fmt::format("{} failed: {}", describe(command), exception.what()));
  }
}

std::vector<std::string> Engine::pending() const {
  std::vector<std::string> all;
  for (const Command& command : commands_) all.push_back(describe(command));
  return all;
}

void Engine::drop_all() {
  for (const Command& command : commands_) {
    if (command.ticket != nullptr) command.ticket->drop_reference();
  }
  commands_.clear();
}

void Engine::check_host(const char* what, const Range& range) {
  if (!options.check_host) return;
  for (const Command& command : commands_) {
    for (const Range& used : command.ranges) {
      const bool reads_only = range.access == Access::Read && used.access == Access::Read;
      if (reads_only || !overlap(range, used)) continue;
      find_problem(fmt::format("host access: {} of {} bytes meets memory that {} still {}", what,
                               range.bytes, describe(command),
                               used.access == Access::Read ? "reads" : "writes"));
      return;
    }
  }
}

void Engine::refuse_memory(uint64_t skip, uint64_t times) {
  first_refused_ = requests_ + skip + 1;
  end_refused_ = first_refused_ + times;
}

bool Engine::refuses() {
  if (!request_counted_) ++requests_;
  request_counted_ = true;
  return requests_ >= first_refused_ && requests_ < end_refused_;
}

void Engine::stop(ErrorCode code, std::string message) {
  if (!fault_) fault_ = Error{code, std::move(message)};
}

void Engine::find_problem(const std::string& message) {
  problems.push_back(message);
  stop(ErrorCode::Internal, message);
}

std::optional<Error> Engine::take_fault() {
  if (!fault_) return {};
  if (reported_) return lost_ ? stopped() : std::nullopt;
  reported_ = true;
  Error error = *fault_;
  if (suppressed_ > 0) {
    error.message += fmt::format("; {} commands queued after it had no effect", suppressed_);
  }
  return error;
}

std::optional<Error> Engine::stopped() const {
  if (!reported_) return {};
  return Error{fault_->code, "the device has stopped for good: " + fault_->message};
}

}  // namespace millrace::simulated
