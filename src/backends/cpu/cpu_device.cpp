// The CPU device: recording of commands, memory and its registration as "cpu".
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstring>
#include <mutex>

#include "backends/cpu/command_queue.h"
#include "backends/cpu/cpu_memory.h"
#include "backends/cpu/cpu_options.h"
#include "backends/cpu/cpu_worker.h"
#include "device/buffer_store.h"
#include "device/completion.h"
#include "device/device.h"
#include "device/test_hooks.h"
#include "device/ticket_pool.h"
#include "device/trace.h"

namespace millrace::cpu {
namespace {

// Queued work gets this long to end when the device is closed; what is left then is dropped.
constexpr std::chrono::seconds kShutdownBound{10};

DeviceInfo describe(const CpuOptions& options) {
  return {.id = "cpu",
          .name = processor_name(),
          .driver = "host threads",
          .memory_bytes = options.memory_bytes,
          .threads = options.threads};
}

class CpuDevice final : public Device {
 public:
  CpuDevice(const CpuOptions& options, const Block& staging)
      : info_(describe(options)),
        lazy_(options.lazy),
        store_(&memory_, options.memory_bytes, staging, "cpu device"),
        worker_(&queue_, &completion_, options.threads, options.lazy) {}
  ~CpuDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<BufferId> allocate(uint64_t bytes, const char* label) override;
  void release(BufferId buffer) override;
  Result<void> upload(Slice to, std::span<const std::byte> bytes) override;
  Result<Ticket> download(Slice from) override;
  Result<void> launch(const Launch& launch) override;
  Result<void> copy(Slice to, Slice from) override;
  Result<void> fill(Slice to, uint32_t pattern) override;
  Point submit() override { return queue_.last_queued(); }
  Point poll() override { return completion_.passed(); }
  Result<void> wait_blocking(Point point, const WaitSite& site) override;
  WaitLedger& ledger() override { return ledger_; }
  MemoryStats memory() const override;
  void limit_memory(uint64_t bytes) override {
    std::lock_guard lock(mutex_);
    store_.set_limit(bytes);
  }
  QueueStats queue() const override;
  void set_trace(TraceRecorder* trace) override {
    ledger_.set_trace(trace);
    worker_.set_trace(trace);
  }

 private:
  /// What a slice names: its buffer's record and the address of its first byte.
  struct Place {
    StoredBuffer* buffer;
    std::byte* address;
  };
  Result<Place> find(const Slice& slice, const char* verb);
  /// Why nothing may be queued, if so.
  Result<void> check_running() const;
  /// A slot for a command of `kind`; its point will be next_point().
  Command& new_command(Command::Kind kind);
  Point next_point() const { return queue_.last_queued() + 1; }
  void publish();
  void note(const Slice& slice, StoredBuffer* buffer, Access access) {
    BufferStore::note(slice, buffer, access, next_point(), completion_.passed());
  }

  DeviceInfo info_;
  bool lazy_;
  CpuMemory memory_;
  WaitLedger ledger_;
  std::shared_ptr<TicketPool> tickets_ = TicketPool::make();

  mutable std::mutex mutex_;  // guards what follows, and the recording side of queue_
  BufferStore store_;
  uint64_t launches_ = 0;

  CommandQueue queue_;
  Completion completion_{[this](Point point) { worker_.allow(point); }};
  CpuWorker worker_;
};

CpuDevice::~CpuDevice() {
  const Point last = queue_.last_queued();
  const WaitSite site{WaitReason::Shutdown, "cpu.shutdown"};
  if (!completion_.wait_blocking(last, ledger_, site, kShutdownBound)) {
    spdlog::warn("cpu device: {} commands did not end within {} s and are dropped",
                 last - completion_.passed(), kShutdownBound.count());
    worker_.abandon();
    // A running kernel cannot be stopped, and what it uses may not be freed under it.
    completion_.wait_blocking(last, ledger_, site);
  }
  if (const auto fault = worker_.take_fault()) spdlog::error("cpu device: {}", fault->message);
  store_.for_each_live([](const std::string& label, uint64_t bytes) {
    spdlog::debug("cpu device: buffer '{}' of {} bytes was never released", label, bytes);
  });
}

Result<BufferId> CpuDevice::allocate(uint64_t bytes, const char* label) {
  std::lock_guard lock(mutex_);
  return store_.allocate(bytes, label, completion_.passed());
}

void CpuDevice::release(BufferId id) {
  std::lock_guard lock(mutex_);
  if (store_.release(id)) return;
  spdlog::error("cpu device: release of buffer {:#x}, which is not live", id.value);
}

Result<CpuDevice::Place> CpuDevice::find(const Slice& slice, const char* verb) {
  MILLRACE_ASSIGN(StoredBuffer * buffer, store_.find(slice.buffer, verb));
  return Place{buffer, address_of(buffer->block) + slice.offset};
}

Result<void> CpuDevice::check_running() const {
  if (auto fault = worker_.reported_fault()) return *std::move(fault);
  return {};
}

Command& CpuDevice::new_command(Command::Kind kind) {
  Command& command = queue_.next_slot(completion_.passed());
  command.kind = kind;
  return command;
}

void CpuDevice::publish() {
  queue_.publish();
  // A lazy worker is woken by the wait that lets it run.
  if (!lazy_) worker_.wake();
}

Result<void> CpuDevice::upload(Slice to, std::span<const std::byte> bytes) {
  std::unique_lock lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place place, find(to, "upload"));
  if (bytes.empty()) return {};
  const TraceSpan span(ledger_.trace(), TraceTrack::Uploads, "upload",
                       {.number = {"bytes", static_cast<double>(bytes.size())}});
  if (place.buffer->hazards.last_use(to.offset, to.bytes) <= completion_.passed()) {
    // No queued work uses the range, and none can be queued before this call returns.
    lock.unlock();
    std::memcpy(place.address, bytes.data(), bytes.size());
    return {};
  }
  MILLRACE_ASSIGN(const StagedBytes place_staged,
                  store_.stage(bytes.size(), next_point(), completion_.passed()));
  std::byte* const staged = address_of(place_staged);
  std::memcpy(staged, bytes.data(), bytes.size());
  Command& command = new_command(Command::Kind::Copy);
  command.buffers[0] = place.address;
  command.buffers[1] = staged;
  command.bytes[0] = bytes.size();
  note(to, place.buffer, Access::Write);
  publish();
  return {};
}

Result<Ticket> CpuDevice::download(Slice from) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place place, find(from, "download"));
  const Point last_write = place.buffer->hazards.last_write(from.offset, from.bytes);
  if (last_write <= completion_.passed()) {
    TicketState* state = tickets_->take(from.bytes, last_write);
    if (from.bytes > 0) std::memcpy(state->storage().data(), place.address, from.bytes);
    state->set_ready();
    return Ticket(state);
  }
  TicketState* state = tickets_->take(from.bytes, next_point());
  state->add_reference();  // the worker's
  Command& command = new_command(Command::Kind::Snapshot);
  command.ticket = state;
  command.buffers[0] = place.address;
  command.bytes[0] = from.bytes;
  note(from, place.buffer, Access::Read);
  publish();
  return Ticket(state);
}

Result<void> CpuDevice::launch(const Launch& launch) {
  pass_wait_place(WaitPlace::Backend, *this);
  if (launch.bindings.size() > kMaxBindings || launch.params.size() > kMaxParamsBytes) {
    return Error{
        ErrorCode::Internal,
        fmt::format("cpu device: launch of {} at {}:{} has {} bindings and {} parameter bytes; "
                    "the most are {} and {}",
                    kernel_row(launch.kernel).name, launch.site.file_name(), launch.site.line(),
                    launch.bindings.size(), launch.params.size(), kMaxBindings, kMaxParamsBytes)};
  }
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  Command& command = new_command(Command::Kind::Kernel);
  for (size_t i = 0; i < launch.bindings.size(); ++i) {
    const Binding& binding = launch.bindings[i];
    MILLRACE_ASSIGN(const Place place, find(binding.slice, kernel_row(launch.kernel).name));
    command.buffers[i] = place.address;
    command.bytes[i] = binding.slice.bytes;
    note(binding.slice, place.buffer, binding.access);
  }
  command.count = nullptr;
  if (launch.count.buffer) {
    MILLRACE_ASSIGN(const Place place, find(launch.count, kernel_row(launch.kernel).name));
    command.count = reinterpret_cast<const uint32_t*>(place.address);
    note(launch.count, place.buffer, Access::Read);
  }
  command.kernel = launch.kernel;
  command.threads = launch.threads;
  command.n_bindings = static_cast<uint8_t>(launch.bindings.size());
  command.site = launch.site;
  if (!launch.params.empty()) {
    std::memcpy(command.params.data(), launch.params.data(), launch.params.size());
  }
  ++launches_;
  publish();
  return {};
}

Result<void> CpuDevice::copy(Slice to, Slice from) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place target, find(to, "copy"));
  MILLRACE_ASSIGN(const Place source, find(from, "copy"));
  Command& command = new_command(Command::Kind::Copy);
  command.buffers[0] = target.address;
  command.buffers[1] = source.address;
  command.bytes[0] = to.bytes;
  note(from, source.buffer, Access::Read);
  note(to, target.buffer, Access::Write);
  publish();
  return {};
}

Result<void> CpuDevice::fill(Slice to, uint32_t pattern) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place target, find(to, "fill"));
  Command& command = new_command(Command::Kind::Fill);
  command.buffers[0] = target.address;
  command.bytes[0] = to.bytes;
  command.pattern = pattern;
  note(to, target.buffer, Access::Write);
  publish();
  return {};
}

Result<void> CpuDevice::wait_blocking(Point point, const WaitSite& site) {
  if (point > queue_.last_queued()) {
    return Error{ErrorCode::Internal,
                 fmt::format("cpu device: wait '{}' for point {}, but only {} are queued",
                             site.name, point, queue_.last_queued())};
  }
  if (completion_.passed() < point) {
    const uint64_t dry_before = queue().dry_ns;
    completion_.wait_blocking(point, ledger_, site);
    const uint64_t dry_ns = queue().dry_ns - dry_before;
    if (dry_ns > 0) ledger_.add_device_dry(site, dry_ns);
  }
  if (auto fault = worker_.take_fault()) return *std::move(fault);
  return {};
}

MemoryStats CpuDevice::memory() const {
  std::lock_guard lock(mutex_);
  return store_.stats();
}

QueueStats CpuDevice::queue() const {
  QueueStats stats;
  {
    std::lock_guard lock(mutex_);
    stats.launches = launches_;
  }
  worker_.add_times(&stats);
  const Point passed = completion_.passed();
  stats.queued = queue_.last_queued() - passed;
  return stats;
}

std::vector<DeviceInfo> list() {
  const auto options = parse_options("");
  return {describe(options.value())};
}

Result<std::unique_ptr<Device>> open(const std::string& argument) {
  MILLRACE_ASSIGN(const CpuOptions options, parse_options(argument));
  CpuMemory memory;
  MILLRACE_ASSIGN(const Block staging, BufferStore::make_staging(memory, options.staging_bytes));
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(options, staging));
}

constexpr Backend kBackend{"cpu", &list, &open};
[[maybe_unused]] const bool kRegistered = register_backend(&kBackend);

}  // namespace
}  // namespace millrace::cpu
