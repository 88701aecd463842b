// The Vulkan device: recording of commands, memory and its registration as "vulkan".
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstring>
#include <mutex>

#include "backends/vulkan/barriers.h"
#include "backends/vulkan/parts.h"
#include "device/argument_block.h"
#include "device/test_hooks.h"
#include "device/trace.h"

namespace millrace::vulkan {
namespace {

// Argument blocks begin at multiples of this.
constexpr uint64_t kArgumentsAlign = 64;
constexpr size_t kNamed = 8;  // kernels in a message

class VulkanDevice final : public Device {
 public:
  VulkanDevice(DeviceInfo info, std::unique_ptr<Parts> parts)
      : info_(std::move(info)),
        parts_(std::move(parts)),
        store_(*parts_->store),
        queue_(*parts_->queue),
        completion_(queue_.completion()),
        ledger_(parts_->ledger) {}
  ~VulkanDevice() override;

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
  /// What a slice names.
  struct Place {
    StoredBuffer* buffer = nullptr;
    VkBuffer handle = VK_NULL_HANDLE;
    uint64_t offset = 0;          // in the handle's buffer
    uint64_t address = 0;         // on the device
    std::byte* mapped = nullptr;  // null where the host keeps out
  };
  Result<Place> find(const Slice& slice, const char* verb);
  /// The command being recorded uses `slice`: whether a barrier is needed, and that it does.
  void use(const Slice& slice, const Place& place, Access access);
  /// Why nothing may be queued, if so.
  Result<void> check_running();
  Result<void> check_launch(const Launch& launch) const;
  Result<void> add_scratch(const Launch& launch);
  Result<void> put_arguments(Command* command);
  Result<void> record(Command command);

  DeviceInfo info_;
  std::unique_ptr<Parts> parts_;
  BufferStore& store_;
  SubmitQueue& queue_;
  Completion& completion_;
  WaitLedger& ledger_;
  std::shared_ptr<TicketPool> tickets_ = TicketPool::make();

  mutable std::mutex mutex_;  // guards what follows, the store, the host memory, and recording
  Barriers barriers_;
  ArgumentBlock arguments_;  // of the launch being recorded
  std::array<Place, ArgumentBlock::kMaxBindings> places_;
  uint64_t launches_ = 0;
};

VulkanDevice::~VulkanDevice() {
  const Point last = queue_.close_batch();
  const WaitSite site{WaitReason::Shutdown, "vulkan.shutdown"};
  const auto bound = parts_->context->options().close_bound;
  const bool ended = completion_.wait_blocking(last, ledger_, site, bound);
  if (!ended) {
    spdlog::warn("{}: {} commands did not end within {} ms and are dropped; kernels among them: {}",
                 info_.id, last - completion_.passed(), bound.count(), queue_.unfinished(kNamed));
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
  AbandonedParts::instance().add(std::move(parts_));
}

Result<BufferId> VulkanDevice::allocate(uint64_t bytes, const char* label) {
  std::lock_guard lock(mutex_);
  auto made = store_.allocate(bytes, label, completion_.passed());
  // A lost device refuses memory too.
  if (!made.ok()) MILLRACE_TRY(check_running());
  return made;
}

void VulkanDevice::release(BufferId id) {
  std::lock_guard lock(mutex_);
  if (store_.release(id)) return;
  spdlog::error("{}: release of buffer {:#x}, which is not live", info_.id, id.value);
}

Result<VulkanDevice::Place> VulkanDevice::find(const Slice& slice, const char* verb) {
  MILLRACE_ASSIGN(StoredBuffer * buffer, store_.find(slice.buffer, verb));
  const VulkanBlock& block = block_of(buffer->block.handle);
  std::byte* const mapped = block.mapped();
  return Place{.buffer = buffer,
               .handle = block.buffer(),
               .offset = block.offset + slice.offset,
               .address = block.address() + slice.offset,
               .mapped = mapped == nullptr ? nullptr : mapped + slice.offset};
}

void VulkanDevice::use(const Slice& slice, const Place& place, Access access) {
  barriers_.use(*place.buffer, slice, access);
  BufferStore::note(slice, place.buffer, access, queue_.next_point(), completion_.passed());
}

Result<void> VulkanDevice::check_running() {
  const ValidationLog* const validation = parts_->context->validation();
  if (validation != nullptr && !validation->empty()) {
    queue_.fault().set({ErrorCode::Internal, validation->text()});
  }
  if (auto fault = queue_.fault().report()) return *std::move(fault);
  return {};
}

Result<void> VulkanDevice::record(Command command) {
  command.barrier = barriers_.take(queue_.next_point());
  queue_.record(command);
  return check_running();
}

Result<void> VulkanDevice::upload(Slice to, std::span<const std::byte> bytes) {
  std::unique_lock lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place place, find(to, "upload"));
  if (bytes.empty()) return {};
  const TraceSpan span(ledger_.trace(), TraceTrack::Uploads, "upload",
                       {.number = {"bytes", static_cast<double>(bytes.size())}});
  const Point last_use = place.buffer->hazards.last_use(to.offset, to.bytes);
  if (place.mapped != nullptr && last_use <= completion_.passed()) {
    // No queued work uses the range, and none can be queued before this call returns.
    lock.unlock();
    std::memcpy(place.mapped, bytes.data(), bytes.size());
    return {};
  }
  MILLRACE_ASSIGN(const HostMemory::Piece staged,
                  parts_->uploads->take(bytes.size(), queue_.next_point(), completion_.passed()));
  std::memcpy(staged.mapped, bytes.data(), bytes.size());
  use(to, place, Access::Write);
  return record({.kind = Command::Kind::Upload,
                 .to = place.handle,
                 .from = staged.buffer,
                 .to_offset = place.offset,
                 .from_offset = staged.offset,
                 .bytes = bytes.size()});
}

Result<Ticket> VulkanDevice::download(Slice from) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place place, find(from, "download"));
  const Point last_write = place.buffer->hazards.last_write(from.offset, from.bytes);
  const bool readable = place.mapped != nullptr && parts_->memory->kind().cached;
  if (last_write <= completion_.passed() && (readable || from.bytes == 0)) {
    TicketState* const state = tickets_->take(from.bytes, last_write);
    if (from.bytes > 0) std::memcpy(state->storage().data(), place.mapped, from.bytes);
    state->set_ready();
    return Ticket(state);
  }
  MILLRACE_ASSIGN(const HostMemory::Piece landing,
                  parts_->downloads->take(from.bytes, queue_.next_point(), completion_.passed()));
  TicketState* const state = tickets_->take(from.bytes, queue_.next_point());
  Ticket ticket(state);
  state->add_reference();  // the queue's
  use(from, place, Access::Read);
  MILLRACE_TRY(record({.kind = Command::Kind::Download,
                       .to = landing.buffer,
                       .from = place.handle,
                       .to_offset = landing.offset,
                       .from_offset = place.offset,
                       .bytes = from.bytes,
                       .ticket = state,
                       .landing = landing.mapped}));
  return ticket;
}

Result<void> VulkanDevice::check_launch(const Launch& launch) const {
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
  if (parts_->pipelines->passes(launch.kernel).empty()) {
    return Error{ErrorCode::Internal,
                 fmt::format("{}: launch of {} at {}:{}: this build has no GPU code for it",
                             info_.id, name, launch.site.file_name(), launch.site.line())};
  }
  return {};
}

Result<void> VulkanDevice::add_scratch(const Launch& launch) {
  const uint64_t bytes = gpu_scratch_bytes(launch.kernel, launch.threads, launch.params);
  if (bytes == 0) return {};
  MILLRACE_ASSIGN(const Block scratch,
                  store_.take_scratch(bytes, queue_.next_point(), completion_.passed()));
  barriers_.use(scratch.last_use);
  arguments_.set_scratch(block_of(scratch.handle).address());
  return {};
}

Result<void> VulkanDevice::put_arguments(Command* command) {
  const uint64_t bytes = arguments_.bytes().size();
  command->arguments_stride = (bytes + kArgumentsAlign - 1) / kArgumentsAlign * kArgumentsAlign;
  MILLRACE_ASSIGN(const HostMemory::Piece piece,
                  parts_->arguments->take(command->arguments_stride * command->passes.size(),
                                          queue_.next_point(), completion_.passed()));
  command->arguments = piece.address;
  std::byte* to = piece.mapped;
  for (const PlannedPass& pass : command->passes) {
    if (gpu_skips_pass(pass.plan, arguments_.params())) {
      command->skipped |= uint64_t{1} << pass.plan.pass;
    }
    arguments_.set_pass(pass.plan.pass, parts_->pipelines->groups(pass, command->threads));
    std::memcpy(to, arguments_.bytes().data(), bytes);
    to += command->arguments_stride;
  }
  return {};
}

Result<void> VulkanDevice::launch(const Launch& launch) {
  pass_wait_place(WaitPlace::Backend, *this);
  MILLRACE_TRY(check_launch(launch));
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  const char* const name = kernel_row(launch.kernel).name;
  Command command{.kind = Command::Kind::Kernel,
                  .kernel = launch.kernel,
                  .threads = launch.threads,
                  .site = launch.site};
  arguments_.begin(launch.threads);
  for (size_t i = 0; i < launch.bindings.size(); ++i) {
    MILLRACE_ASSIGN(places_[i], find(launch.bindings[i].slice, name));
    arguments_.add_address(places_[i].address);
  }
  arguments_.add_params(launch.params);
  Place count;
  if (launch.count.buffer) {
    MILLRACE_ASSIGN(count, find(launch.count, name));
    arguments_.set_count(count.address);
  }
  if (launch.threads > 0) {
    command.passes = parts_->pipelines->passes(launch.kernel);
    MILLRACE_TRY(add_scratch(launch));
    MILLRACE_TRY(put_arguments(&command));
  }
  // A range bound twice must not look like a conflict of the launch with itself.
  for (size_t i = 0; i < launch.bindings.size(); ++i) {
    barriers_.use(*places_[i].buffer, launch.bindings[i].slice, launch.bindings[i].access);
  }
  if (count.buffer != nullptr) use(launch.count, count, Access::Read);
  for (size_t i = 0; i < launch.bindings.size(); ++i) {
    BufferStore::note(launch.bindings[i].slice, places_[i].buffer, launch.bindings[i].access,
                      queue_.next_point(), completion_.passed());
  }
  ++launches_;
  return record(command);
}

Result<void> VulkanDevice::copy(Slice to, Slice from) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place target, find(to, "copy"));
  MILLRACE_ASSIGN(const Place source, find(from, "copy"));
  barriers_.use(*target.buffer, to, Access::Write);
  use(from, source, Access::Read);
  BufferStore::note(to, target.buffer, Access::Write, queue_.next_point(), completion_.passed());
  return record({.kind = Command::Kind::Copy,
                 .to = target.handle,
                 .from = source.handle,
                 .to_offset = target.offset,
                 .from_offset = source.offset,
                 .bytes = to.bytes});
}

Result<void> VulkanDevice::fill(Slice to, uint32_t pattern) {
  std::lock_guard lock(mutex_);
  MILLRACE_TRY(check_running());
  MILLRACE_ASSIGN(const Place target, find(to, "fill"));
  use(to, target, Access::Write);
  return record({.kind = Command::Kind::Fill,
                 .to = target.handle,
                 .to_offset = target.offset,
                 .bytes = to.bytes,
                 .pattern = pattern});
}

Result<void> VulkanDevice::wait_blocking(Point point, const WaitSite& site) {
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
  return check_running();
}

MemoryStats VulkanDevice::memory() const {
  std::lock_guard lock(mutex_);
  MemoryStats stats = store_.stats();
  for (const HostMemory* host :
       {parts_->uploads.get(), parts_->downloads.get(), parts_->arguments.get()}) {
    const MemoryStats own = host->stats();
    stats.reserved_bytes += own.reserved_bytes;
    stats.peak_reserved_bytes += own.peak_reserved_bytes;
    stats.staging_bytes += own.reserved_bytes;
  }
  return stats;
}

QueueStats VulkanDevice::queue() const {
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

std::vector<DeviceInfo> list() {
  const auto instance = VulkanInstance::open(false);
  if (!instance.ok()) return {};
  const auto candidates = find_candidates(*instance.value());
  if (!candidates.ok()) return {};
  std::vector<DeviceInfo> infos;
  for (const Candidate& candidate : candidates.value().usable) infos.push_back(candidate.info);
  return infos;
}

Result<std::unique_ptr<Device>> open(const std::string& argument) {
  MILLRACE_ASSIGN(const VulkanOptions options, parse_options(argument));
  AbandonedParts::instance().tidy();
  MILLRACE_ASSIGN(auto parts, Parts::make(options));
  DeviceInfo info = parts->context->info();
  if (options.memory_bytes > 0) info.memory_bytes = options.memory_bytes;
  return std::unique_ptr<Device>(std::make_unique<VulkanDevice>(std::move(info), std::move(parts)));
}

constexpr Backend kBackend{"vulkan", &list, &open};
[[maybe_unused]] const bool kRegistered = register_backend(&kBackend);

}  // namespace
}  // namespace millrace::vulkan
