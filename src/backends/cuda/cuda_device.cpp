// The CUDA device: recording of commands, memory and its registration as "cuda".
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/cuda_options.h"
#include "backends/cuda/kernel_library.h"
#include "backends/cuda/overrides.h"
#include "backends/cuda/stream_queue.h"
#include "device/buffer_store.h"
#include "device/test_hooks.h"
#include "device/trace.h"

namespace millrace::cuda {
namespace {

constexpr uint64_t kReadbackPart = 4;  // the readback ring's part of the upload ring

/// Everything that the driver or the completion thread may still use while the device ends.
struct Parts {
  explicit Parts(const Driver& driver, const CudaOptions& options)
      : driver(driver), options(options) {}

  const Driver& driver;
  const CudaOptions options;
  std::unique_ptr<CudaContext> context;
  std::unique_ptr<KernelLibrary> kernels;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<PinnedStaging> uploads, downloads;
  std::unique_ptr<BufferStore> store;
  std::unique_ptr<StreamQueue> queue;
  WaitLedger ledger;
};

/// Parts of devices whose work did not end in time. The driver still uses them; nothing can stop
/// it.
class Abandoned {
 public:
  void add(std::unique_ptr<Parts> parts) {
    std::lock_guard lock(mutex_);
    all_.push_back(std::move(parts));
  }
  /// Lets go of what has ended after all.
  void tidy() {
    std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const std::unique_ptr<Parts>& parts) {
      return parts->queue->completion().passed() >= parts->queue->last_recorded();
    });
  }
  /// The program's only one, which no exit destroys.
  static Abandoned& instance() {
    static auto* const kInstance = new Abandoned;
    return *kInstance;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Parts>> all_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceInfo info, std::unique_ptr<Parts> parts)
      : info_(std::move(info)),
        parts_(std::move(parts)),
        store_(*parts_->store),
        queue_(*parts_->queue),
        completion_(queue_.completion()),
        ledger_(parts_->ledger) {}
  ~CudaDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<BufferId> allocate(uint64_t bytes, const char* label) override;
  void release(BufferId buffer) override;
  Result<void> upload(Slice to, std::span<const std::byte> bytes) override;
  Result<Ticket> download(Slice from) override;
  Result<void> launch(const Launch& launch) override;
  Result<void> copy(Slice to, Slice from) override;
  Result<void> fill(Slice to, uint32_t pattern) override;
  Point submit() override { return queue_.close_batch(); }
  Point poll() override {
    queue_.close_batch();
    return completion_.passed();
  }
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
    queue_.set_trace(trace);
  }

 private:
  /// What a slice names: its buffer's record and the device address of its first byte.
  struct Place {
    StoredBuffer* buffer;
    uint64_t address;
  };
  Result<Place> find(const Slice& slice, const char* verb);
  /// As find(), for a range that the command being recorded uses.
  Result<uint64_t> use(const Slice& slice, Access access, const char* verb);
  /// Why nothing may be queued, if so: a fault that was reported. One that was not is for whoever
  /// waits next, since the command at hand is not to blame; until then commands have no effect.
  Result<void> check_running();
  /// The fault, if one happened.
  Result<void> report_fault();
  Result<void> record(const Command& command);
  Result<void> check_launch(const Launch& launch) const;
  Result<void> add_scratch(const Launch& launch);

  DeviceInfo info_;
  std::unique_ptr<Parts> parts_;
  BufferStore& store_;
  StreamQueue& queue_;
  Completion& completion_;
  WaitLedger& ledger_;
  std::shared_ptr<TicketPool> tickets_ = TicketPool::make();

  std::atomic<bool> fault_reported_ = false;
  mutable std::mutex mutex_;  // guards what follows, the store, the staging, and recording
  Command command_;           // being recorded
  uint64_t launches_ = 0;
};

CudaDevice::~CudaDevice() {
  const Point last = queue_.close_batch();
  const WaitSite site{WaitReason::Shutdown, "cuda.shutdown"};
  const auto bound = parts_->options.close_bound;
  const bool ended = completion_.wait_blocking(last, ledger_, site, bound);
  if (!ended) {
    spdlog::warn("{}: {} commands did not end within {} ms and are dropped; kernels among them: {}",
                 info_.id, last - completion_.passed(), bound.count(), queue_.unfinished(8));
    queue_.abandon();
  }
  if (const auto fault = queue_.fault().unreported()) {
    spdlog::error("{}: {}", info_.id, fault->message);
  }
  store_.for_each_live([this](const std::string& label, uint64_t bytes) {
    spdlog::debug("{}: buffer '{}' of {} bytes was never released", info_.id, label, bytes);
  });
  if (ended) return;
  ledger_.set_trace(nullptr);
  queue_.set_trace(nullptr);
  Abandoned::instance().add(std::move(parts_));
}

Result<BufferId> CudaDevice::allocate(uint64_t bytes, const char* label) {
  std::lock_guard lock(mutex_);
  auto made = store_.allocate(bytes, label, completion_.passed());
  // A lost device refuses memory too.
  if (!made.ok()) MILLRACE_TRY(report_fault());
  return made;
}

void CudaDevice::release(BufferId id) {
  std::lock_guard lock(mutex_);
  if (store_.release(id)) return;
  spdlog::error("{}: release of buffer {:#x}, which is not live", info_.id, id.value);
}

Result<CudaDevice::Place> CudaDevice::find(const Slice& slice, const char* verb) {
  MILLRACE_ASSIGN(StoredBuffer * buffer, store_.find(slice.buffer, verb));
  return Place{buffer, buffer->block.handle + slice.offset};
}

Result<uint64_t> CudaDevice::use(const Slice& slice, Access access, const char* verb) {
  MILLRACE_ASSIGN(const Place place, find(slice, verb));
  BufferStore::note(slice, place.buffer, access, queue_.next_point(), completion_.passed());
  return place.address;
}

Result<void> CudaDevice::report_fault() {
  if (auto fault = queue_.fault().report()) {
    fault_reported_ = true;
    return *std::move(fault);
  }
  return {};
}

Result<void> CudaDevice::check_running() {
  if (fault_reported_) return report_fault();
  return {};
}

Result<void> CudaDevice::record(const Command& command) {
  if (queue_.record(command)) return {};
  return report_fault();
}

Result<void> CudaDevice::upload(Slice to, std::span<const std::byte> bytes) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_TRY(find(to, "upload"));
  if (bytes.empty()) return {};
  const TraceSpan span(ledger_.trace(), TraceTrack::Uploads, "upload",
                       {.number = {"bytes", static_cast<double>(bytes.size())}});
  MILLRACE_ASSIGN(std::byte* const staged,
                  parts_->uploads->take(bytes.size(), queue_.next_point(), completion_.passed()));
  std::memcpy(staged, bytes.data(), bytes.size());
  MILLRACE_ASSIGN(command_.to, use(to, Access::Write, "upload"));
  command_.kind = Command::Kind::Upload;
  command_.from = reinterpret_cast<uint64_t>(staged);
  command_.bytes = bytes.size();
  command_.ticket = nullptr;
  return record(command_);
}

Result<Ticket> CudaDevice::download(Slice from) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const uint64_t address, use(from, Access::Read, "download"));
  std::byte* landing = nullptr;
  if (from.bytes > 0) {
    MILLRACE_ASSIGN(landing,
                    parts_->downloads->take(from.bytes, queue_.next_point(), completion_.passed()));
  }
  TicketState* const state = tickets_->take(from.bytes, queue_.next_point());
  Ticket ticket(state);
  state->add_reference();  // the queue's
  command_.kind = Command::Kind::Download;
  command_.to = reinterpret_cast<uint64_t>(landing);
  command_.from = address;
  command_.bytes = from.bytes;
  command_.ticket = state;
  MILLRACE_TRY(record(command_));
  return ticket;
}

Result<void> CudaDevice::check_launch(const Launch& launch) const {
  const char* const name = kernel_row(launch.kernel).name;
  if (launch.bindings.size() > ArgumentBlock::kMaxBindings ||
      launch.params.size() > ArgumentBlock::kMaxParamsBytes) {
    return Error{
        ErrorCode::Internal,
        fmt::format("{}: launch of {} at {}:{} has {} bindings and {} parameter bytes; the "
                    "most are {} and {}",
                    info_.id, name, launch.site.file_name(), launch.site.line(),
                    launch.bindings.size(), launch.params.size(), ArgumentBlock::kMaxBindings,
                    ArgumentBlock::kMaxParamsBytes)};
  }
  if (find_override(launch.kernel) == nullptr && parts_->kernels->passes(launch.kernel).empty()) {
    return Error{ErrorCode::Internal,
                 fmt::format("{}: launch of {} at {}:{}: this build has no GPU code for it",
                             info_.id, name, launch.site.file_name(), launch.site.line())};
  }
  return {};
}

Result<void> CudaDevice::add_scratch(const Launch& launch) {
  const Override* const vendor = find_override(launch.kernel);
  const uint64_t bytes = vendor != nullptr
                             ? vendor->scratch_bytes(launch.threads, launch.params)
                             : gpu_scratch_bytes(launch.kernel, launch.threads, launch.params);
  if (bytes == 0) return {};
  MILLRACE_ASSIGN(const Block scratch,
                  store_.take_scratch(bytes, queue_.next_point(), completion_.passed()));
  command_.arguments.set_scratch(scratch.handle);
  return {};
}

Result<void> CudaDevice::launch(const Launch& launch) {
  pass_wait_place(WaitPlace::Backend, *this);
  const char* const name = kernel_row(launch.kernel).name;
  MILLRACE_TRY(check_launch(launch));
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  command_.kind = Command::Kind::Kernel;
  command_.kernel = launch.kernel;
  command_.threads = launch.threads;
  command_.site = launch.site;
  command_.ticket = nullptr;
  command_.arguments.begin(launch.threads);
  for (const Binding& binding : launch.bindings) {
    MILLRACE_ASSIGN(const uint64_t address, use(binding.slice, binding.access, name));
    command_.arguments.add_address(address);
  }
  command_.arguments.add_params(launch.params);
  if (launch.count.buffer) {
    MILLRACE_ASSIGN(const uint64_t address, use(launch.count, Access::Read, name));
    command_.arguments.set_count(address);
  }
  MILLRACE_TRY(add_scratch(launch));
  ++launches_;
  return record(command_);
}

Result<void> CudaDevice::copy(Slice to, Slice from) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(command_.from, use(from, Access::Read, "copy"));
  MILLRACE_ASSIGN(command_.to, use(to, Access::Write, "copy"));
  command_.kind = Command::Kind::Copy;
  command_.bytes = to.bytes;
  command_.ticket = nullptr;
  return record(command_);
}

Result<void> CudaDevice::fill(Slice to, uint32_t pattern) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(command_.to, use(to, Access::Write, "fill"));
  command_.kind = Command::Kind::Fill;
  command_.bytes = to.bytes;
  command_.pattern = pattern;
  command_.ticket = nullptr;
  return record(command_);
}

Result<void> CudaDevice::wait_blocking(Point point, const WaitSite& site) {
  const Point last = queue_.close_batch();
  if (point > last && !queue_.fault().happened()) {
    return Error{ErrorCode::Internal,
                 fmt::format("{}: wait '{}' for point {}, but only {} are queued", info_.id,
                             site.name, point, last)};
  }
  if (completion_.passed() < point && point <= last) {
    const uint64_t dry_before = queue().dry_ns;
    completion_.wait_blocking(point, ledger_, site);
    const uint64_t dry_ns = queue().dry_ns - dry_before;
    if (dry_ns > 0) ledger_.add_device_dry(site, dry_ns);
  }
  return report_fault();
}

MemoryStats CudaDevice::memory() const {
  std::lock_guard lock(mutex_);
  MemoryStats stats = store_.stats();
  stats.staging_bytes = parts_->uploads->reserved_bytes() + parts_->downloads->reserved_bytes();
  return stats;
}

QueueStats CudaDevice::queue() const {
  QueueStats stats;
  {
    std::lock_guard lock(mutex_);
    stats.launches = launches_;
  }
  queue_.add_times(&stats);
  const Point passed = completion_.passed();
  stats.queued = queue_.last_recorded() - passed;
  return stats;
}

Result<std::unique_ptr<Device>> open(const std::string& argument) {
  MILLRACE_ASSIGN(const CudaOptions options, parse_options(argument));
  MILLRACE_ASSIGN(const Driver* const driver, Driver::open());
  Abandoned::instance().tidy();
  MILLRACE_ASSIGN(DeviceInfo info, describe(*driver, options.ordinal));
  auto parts = std::make_unique<Parts>(*driver, options);
  MILLRACE_ASSIGN(parts->context, CudaContext::open(*driver, options.ordinal));
  MILLRACE_ASSIGN(parts->kernels, KernelLibrary::load(*parts->context, options));
  parts->memory = std::make_unique<DeviceMemory>(parts->context.get());
  MILLRACE_ASSIGN(parts->uploads, PinnedStaging::make(parts->context.get(), options.staging_bytes));
  MILLRACE_ASSIGN(parts->downloads,
                  PinnedStaging::make(parts->context.get(), options.staging_bytes / kReadbackPart));
  const uint64_t limit = options.memory_bytes > 0 ? options.memory_bytes : info.memory_bytes;
  info.memory_bytes = limit;
  parts->store = std::make_unique<BufferStore>(parts->memory.get(), limit, Block{}, "cuda device");
  parts->queue = std::make_unique<StreamQueue>(
      parts->context.get(), parts->kernels.get(), options,
      std::vector<PinnedStaging*>{parts->uploads.get(), parts->downloads.get()});
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(info), std::move(parts)));
}

constexpr Backend kBackend{"cuda", &list_devices_of_driver, &open};
[[maybe_unused]] const bool kRegistered = register_backend(&kBackend);

}  // namespace
}  // namespace millrace::cuda
