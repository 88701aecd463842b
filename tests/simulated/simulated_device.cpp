// The simulated device: recording of commands, memory and its registration as "simulated".
#include "simulated/simulated_device.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>

#include "device/buffer_store.h"
#include "device/ticket_pool.h"
#include "simulated/engine.h"
#include "simulated/watchdog.h"

namespace millrace::simulated {
namespace {

constexpr std::align_val_t kAlign{256};
constexpr size_t kMaxNamedDropped = 8;
constexpr uint64_t kCommandNs = 1000;  // what a command takes on the simulated clock

std::byte* address_of(uint64_t handle) { return reinterpret_cast<std::byte*>(handle); }

void poison(std::byte* first, uint64_t bytes) {
  std::fill_n(reinterpret_cast<uint32_t*>(first), bytes / 4, kPoison);
}

/// The system's memory, as far as the test lets it be had.
class Memory final : public BlockSource {
 public:
  explicit Memory(Engine* engine) : engine_(engine) {}

  Result<uint64_t> create(uint64_t bytes) override {
    if (engine_->refuses()) return Error{ErrorCode::OutOfMemory, "memory was refused by the test"};
    void* address = ::operator new(bytes, kAlign, std::nothrow);
    if (address == nullptr) {
      return Error{ErrorCode::OutOfMemory, fmt::format("the system gave no {} bytes", bytes)};
    }
    if (engine_->options.poison) poison(static_cast<std::byte*>(address), bytes);
    return reinterpret_cast<uint64_t>(address);
  }
  void destroy(uint64_t handle, uint64_t bytes) override {
    engine_->check_host("giving back a block", {address_of(handle), bytes, Access::Write});
    ::operator delete(reinterpret_cast<void*>(handle), kAlign);
  }

 private:
  Engine* engine_;
};

class SimulatedDevice final : public Device {
 public:
  SimulatedDevice(std::shared_ptr<Engine> engine, std::unique_ptr<Memory> memory,
                  const Block& staging)
      : info_{.id = "simulated",
              .name = "simulated device",
              .driver = "test clock",
              .memory_bytes = engine->options.memory_bytes,
              .threads = 1,
              .software = true},
        engine_(std::move(engine)),
        memory_(std::move(memory)),
        store_(memory_.get(), engine_->options.memory_bytes, staging, "simulated device") {
    const std::chrono::milliseconds limit(engine_->options.watchdog_ms);
    if (limit.count() > 0) watchdog_.emplace(engine_.get(), limit);
  }
  ~SimulatedDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<BufferId> allocate(uint64_t bytes, const char* label) override;
  void release(BufferId id) override;
  Result<void> upload(Slice to, std::span<const std::byte> bytes) override;
  Result<Ticket> download(Slice from) override;
  Result<void> launch(const Launch& launch) override;
  Result<void> copy(Slice to, Slice from) override;
  Result<void> fill(Slice to, uint32_t pattern) override;
  Point submit() override;
  Point poll() override;
  Result<void> wait_blocking(Point point, const WaitSite& site) override;
  WaitLedger& ledger() override { return ledger_; }
  MemoryStats memory() const override;
  void limit_memory(uint64_t bytes) override {
    std::lock_guard lock(engine_->mutex);
    store_.set_limit(bytes);
  }
  QueueStats queue() const override;

 private:
  struct Place {
    StoredBuffer* buffer;
    std::byte* address;
  };
  Result<Place> find(const Slice& slice, const char* verb);
  Result<void> check_running() const;
  /// Adds a use of `slice` to the command that is being recorded.
  Result<void> use(const Slice& slice, Access access, Command* command);
  void queue_command(Command command);
  /// Whether no work in flight uses `slice` (or, to read it, writes it).
  bool host_may(Access access, const Slice& slice, const StoredBuffer& buffer) const;
  void wait_for_blocking(std::unique_lock<std::mutex>& lock, Point point, const WaitSite& site,
                         bool* deadlock);

  DeviceInfo info_;
  std::shared_ptr<Engine> engine_;
  WaitLedger ledger_;
  std::shared_ptr<TicketPool> tickets_ = TicketPool::make();
  std::unique_ptr<Memory> memory_;
  BufferStore store_;
  uint64_t launches_ = 0;
  std::condition_variable never_;  // all progress is made by the thread that waits
  std::optional<Watchdog> watchdog_;
};

SimulatedDevice::~SimulatedDevice() {
  std::unique_lock lock(engine_->mutex);
  ClosingReport& report = engine_->closing;
  const uint64_t before = engine_->commands_run();
  bool deadlock = false;
  wait_for_blocking(lock, engine_->queued(), {WaitReason::Shutdown, "simulated.shutdown"},
                    &deadlock);
  report.ran = engine_->commands_run() - before;
  report.dropped_commands = engine_->pending();
  report.dropped = report.dropped_commands.size();
  if (report.dropped > kMaxNamedDropped) report.dropped_commands.resize(kMaxNamedDropped);
  store_.for_each_live([&](const std::string& label, uint64_t bytes) {
    report.leaks.push_back(fmt::format("buffer '{}' of {} bytes was never released", label, bytes));
  });
  for (const std::string& leak : report.leaks) spdlog::debug("simulated device: {}", leak);
  report.waits = ledger_.records();
  report.closed = true;
  engine_->drop_all();
  if (engine_->stopped()) return;  // reported before
  if (const auto fault = engine_->take_fault()) {
    spdlog::error("simulated device: {}", fault->message);
  }
}

Result<SimulatedDevice::Place> SimulatedDevice::find(const Slice& slice, const char* verb) {
  MILLRACE_ASSIGN(StoredBuffer * buffer, store_.find(slice.buffer, verb));
  return Place{buffer, address_of(buffer->block.handle) + slice.offset};
}

Result<void> SimulatedDevice::check_running() const {
  if (auto stopped = engine_->stopped()) return *std::move(stopped);
  return {};
}

Result<void> SimulatedDevice::use(const Slice& slice, Access access, Command* command) {
  MILLRACE_ASSIGN(const Place place, find(slice, command->name));
  BufferStore::note(slice, place.buffer, access, engine_->queued() + 1, engine_->passed());
  command->ranges.push_back({place.address, slice.bytes, access});
  return {};
}

void SimulatedDevice::queue_command(Command command) {
  engine_->add(std::move(command));
  engine_->tick();
}

bool SimulatedDevice::host_may(Access access, const Slice& slice,
                               const StoredBuffer& buffer) const {
  if (engine_->forget_hazards) return true;
  const HazardMap& hazards = buffer.hazards;
  const Point guard = access == Access::Read ? hazards.last_write(slice.offset, slice.bytes)
                                             : hazards.last_use(slice.offset, slice.bytes);
  return guard <= engine_->passed();
}

Result<BufferId> SimulatedDevice::allocate(uint64_t bytes, const char* label) {
  std::lock_guard lock(engine_->mutex);
  engine_->begin_request();
  MILLRACE_ASSIGN(const BufferId id, store_.allocate(bytes, label, engine_->passed()));
  const Block& block = store_.find(id, "allocate").or_raise()->block;
  const Slice whole{id, 0, block.bytes};
  if (engine_->options.poison && block.last_use > engine_->passed()) {
    Command command{.kind = Command::Kind::Fill, .name = "poison", .pattern = kPoison};
    MILLRACE_TRY(use(whole, Access::Write, &command));
    engine_->add(std::move(command));
  } else if (engine_->options.poison) {
    engine_->check_host("poison", {address_of(block.handle), block.bytes, Access::Write});
    poison(address_of(block.handle), block.bytes);
  }
  engine_->tick();
  return id;
}

void SimulatedDevice::release(BufferId id) {
  std::lock_guard lock(engine_->mutex);
  if (!store_.release(id)) {
    spdlog::error("simulated device: release of buffer {:#x}, which is not live", id.value);
  }
  engine_->tick();
}

Result<void> SimulatedDevice::upload(Slice to, std::span<const std::byte> bytes) {
  std::lock_guard lock(engine_->mutex);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place place, find(to, "upload"));
  if (bytes.empty()) return {};
  if (host_may(Access::Write, to, *place.buffer)) {
    engine_->check_host("an upload", {place.address, bytes.size(), Access::Write});
    std::memcpy(place.address, bytes.data(), bytes.size());
    engine_->tick();
    return {};
  }
  engine_->begin_request();
  MILLRACE_ASSIGN(const StagedBytes staged,
                  store_.stage(bytes.size(), engine_->queued() + 1, engine_->passed()));
  std::byte* from = address_of(staged.handle) + staged.offset;
  engine_->check_host("staging", {from, bytes.size(), Access::Write});
  std::memcpy(from, bytes.data(), bytes.size());
  Command command{.kind = Command::Kind::Copy, .name = "upload"};
  MILLRACE_TRY(use(to, Access::Write, &command));
  command.ranges.push_back({from, bytes.size(), Access::Read});
  queue_command(std::move(command));
  return {};
}

Result<Ticket> SimulatedDevice::download(Slice from) {
  std::lock_guard lock(engine_->mutex);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place place, find(from, "download"));
  if (host_may(Access::Read, from, *place.buffer)) {
    engine_->check_host("a download", {place.address, from.bytes, Access::Read});
    TicketState* state = tickets_->take(from.bytes, engine_->passed());
    if (from.bytes > 0) std::memcpy(state->storage().data(), place.address, from.bytes);
    state->set_ready();
    engine_->tick();
    return Ticket(state);
  }
  TicketState* state = tickets_->take(from.bytes, engine_->queued() + 1);
  Ticket ticket(state);
  Command command{.kind = Command::Kind::Snapshot, .name = "download", .ticket = state};
  MILLRACE_TRY(use(from, Access::Read, &command));
  state->add_reference();  // the command's
  queue_command(std::move(command));
  return ticket;
}

Result<void> SimulatedDevice::launch(const Launch& launch) {
  std::lock_guard lock(engine_->mutex);
  MILLRACE_TRY(check_running());
  Command command{.kind = Command::Kind::Kernel,
                  .name = kernel_row(launch.kernel).name,
                  .kernel = launch.kernel,
                  .threads = launch.threads,
                  .params = {launch.params.begin(), launch.params.end()},
                  .site = launch.site};
  for (const Binding& binding : launch.bindings) {
    MILLRACE_TRY(use(binding.slice, binding.access, &command));
  }
  if (launch.count.buffer) {
    MILLRACE_TRY(use(launch.count, Access::Read, &command));
    command.count = reinterpret_cast<const uint32_t*>(command.ranges.back().first);
  }
  ++launches_;
  queue_command(std::move(command));
  return {};
}

Result<void> SimulatedDevice::copy(Slice to, Slice from) {
  std::lock_guard lock(engine_->mutex);
  MILLRACE_TRY(check_running());
  Command command{.kind = Command::Kind::Copy, .name = "copy"};
  MILLRACE_TRY(use(to, Access::Write, &command));
  MILLRACE_TRY(use(from, Access::Read, &command));
  queue_command(std::move(command));
  return {};
}

Result<void> SimulatedDevice::fill(Slice to, uint32_t pattern) {
  std::lock_guard lock(engine_->mutex);
  MILLRACE_TRY(check_running());
  Command command{.kind = Command::Kind::Fill, .name = "fill", .pattern = pattern};
  MILLRACE_TRY(use(to, Access::Write, &command));
  queue_command(std::move(command));
  return {};
}

Point SimulatedDevice::submit() {
  std::lock_guard lock(engine_->mutex);
  const Point point = engine_->close_batch();
  engine_->tick();
  return point;
}

Point SimulatedDevice::poll() {
  std::lock_guard lock(engine_->mutex);
  engine_->tick(/*is_poll=*/true);
  return engine_->passed();
}

void SimulatedDevice::wait_for_blocking(std::unique_lock<std::mutex>& lock, Point point,
                                        const WaitSite& site, bool* deadlock) {
  // The host would stop here, so the ledger is to see a wait before anything runs.
  bool stopped = false;
  const auto done = [&] {
    if (engine_->passed() >= point) return true;
    if (!std::exchange(stopped, true)) return false;
    *deadlock = engine_->options.clock == Clock::Stall;
    if (!*deadlock) engine_->run_to(point);
    return true;
  };
  ledger_.wait_blocking(lock, never_, done, site);
}

Result<void> SimulatedDevice::wait_blocking(Point point, const WaitSite& site) {
  std::unique_lock lock(engine_->mutex);
  if (point > engine_->queued()) {
    return Error{ErrorCode::Internal,
                 fmt::format("simulated device: wait '{}' for point {}, but only {} are queued",
                             site.name, point, engine_->queued())};
  }
  bool deadlock = false;
  wait_for_blocking(lock, point, site, &deadlock);
  if (deadlock) {
    return Error{ErrorCode::Internal,
                 fmt::format("deadlock: wait '{}' ({}) at {}:{} for point {} can never end; the "
                             "device stalls at point {} with {} commands queued, the oldest: {}",
                             site.name, to_string(site.reason), site.where.file_name(),
                             site.where.line(), point, engine_->passed(),
                             engine_->queued() - engine_->passed(), engine_->pending().front())};
  }
  if (auto fault = engine_->take_fault()) return *std::move(fault);
  return {};
}

MemoryStats SimulatedDevice::memory() const {
  std::lock_guard lock(engine_->mutex);
  return store_.stats();
}

QueueStats SimulatedDevice::queue() const {
  std::lock_guard lock(engine_->mutex);
  return {.launches = launches_,
          .busy_ns = engine_->commands_run() * kCommandNs,
          .dry_ns = 0,
          .queued = engine_->queued() - engine_->passed()};
}

std::shared_ptr<Engine>& newest_engine() {
  static std::shared_ptr<Engine> engine;
  return engine;
}

std::vector<DeviceInfo> list() {
  return {
      {.id = "simulated", .name = "simulated device", .driver = "test clock", .software = true}};
}

Result<std::unique_ptr<Device>> open(const std::string& argument) {
  MILLRACE_ASSIGN(const Options options, parse_options(argument));
  MILLRACE_ASSIGN(Opened opened, open_simulated(options));
  return std::move(opened.device);
}

constexpr Backend kBackend{"simulated", &list, &open};
[[maybe_unused]] const bool kRegistered = register_backend(&kBackend);

}  // namespace

Result<Opened> open_simulated(const Options& options) {
  auto engine = std::make_shared<Engine>(options);
  auto memory = std::make_unique<Memory>(engine.get());
  MILLRACE_ASSIGN(const Block staging, BufferStore::make_staging(*memory, options.staging_bytes));
  newest_engine() = engine;
  return Opened{std::make_unique<SimulatedDevice>(engine, std::move(memory), staging),
                Control(engine)};
}

Control newest_control() { return Control(newest_engine()); }

}  // namespace millrace::simulated
