// The checking wrapper: argument checks before any device, so that backends stay free of them.
#include <fmt/format.h>

#include <mutex>
#include <string_view>
#include <unordered_map>

#include "device/device.h"

namespace millrace {
namespace {

bool overlap(const Slice& a, const Slice& b) {
  return a.buffer == b.buffer && a.bytes > 0 && b.bytes > 0 && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

std::string show(const Slice& slice) {
  return fmt::format("buffer {:#x} bytes {}+{}", slice.buffer.value, slice.offset, slice.bytes);
}

char letter_of(Access access) {
  switch (access) {
    case Access::Read:
      return 'r';
    case Access::Write:
      return 'w';
    case Access::ReadWrite:
      return 'x';
  }
  return '?';
}

/// The declared letter of binding `i`, or 0 when the row has no such binding.
char declared_letter(std::string_view access, size_t i) {
  const bool repeats = access.ends_with('*');
  if (repeats) access.remove_suffix(1);
  if (i < access.size()) return access[i];
  return repeats ? access.back() : 0;
}

size_t declared_least(std::string_view access) {
  return access.size() - (access.ends_with('*') ? 1 : 0);
}

class CheckedDevice final : public Device {
 public:
  explicit CheckedDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  const DeviceInfo& info() const override { return device_->info(); }
  Result<BufferId> allocate(uint64_t bytes, const char* label) override;
  void release(BufferId buffer) override;
  Result<void> upload(Slice to, std::span<const std::byte> bytes) override;
  Result<Ticket> download(Slice from) override;
  Result<void> launch(const Launch& launch) override;
  Result<void> copy(Slice to, Slice from) override;
  Result<void> fill(Slice to, uint32_t pattern) override;
  Point submit() override { return device_->submit(); }
  Point poll() override { return device_->poll(); }
  Result<void> wait_blocking(Point point, const WaitSite& site) override;
  WaitLedger& ledger() override { return device_->ledger(); }
  MemoryStats memory() const override { return device_->memory(); }
  void limit_memory(uint64_t bytes) override { device_->limit_memory(bytes); }
  QueueStats queue() const override { return device_->queue(); }
  void set_trace(TraceRecorder* trace) override { device_->set_trace(trace); }

 private:
  /// An error whose text begins with `what`, unless `slice` lies in a live buffer.
  Result<void> check_slice(const Slice& slice, const std::string& what) const;
  /// Why `slice` is not a range of a live buffer, or nothing.
  std::string slice_problem(const Slice& slice) const;
  /// The first thing wrong with `launch`, or nothing.
  std::string launch_problem(const Launch& launch) const;
  static std::string overlap_problem(const Launch& launch);

  std::unique_ptr<Device> device_;
  mutable std::mutex mutex_;
  std::unordered_map<uint32_t, uint64_t> live_;  // id: bytes
};

Error misuse(std::string message) {
  return Error{ErrorCode::Internal, "device check: " + std::move(message)};
}

Result<BufferId> CheckedDevice::allocate(uint64_t bytes, const char* label) {
  if (bytes == 0) return misuse(fmt::format("allocate of 0 bytes for '{}'", label));
  MILLRACE_ASSIGN(const BufferId id, device_->allocate(bytes, label));
  std::lock_guard lock(mutex_);
  if (!live_.emplace(id.value, bytes).second) {
    return misuse(fmt::format("the device gave out live buffer {:#x} again", id.value));
  }
  return id;
}

void CheckedDevice::release(BufferId buffer) {
  {
    std::lock_guard lock(mutex_);
    if (live_.erase(buffer.value) == 0) {
      raise(misuse(fmt::format("release of buffer {:#x}, which is not live", buffer.value)));
    }
  }
  device_->release(buffer);
}

std::string CheckedDevice::slice_problem(const Slice& slice) const {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(slice.buffer.value);
  if (found == live_.end()) return show(slice) + " names a buffer that is not live";
  if (slice.offset > found->second || slice.bytes > found->second - slice.offset) {
    return fmt::format("{} passes the end of the buffer at {}", show(slice), found->second);
  }
  return {};
}

Result<void> CheckedDevice::check_slice(const Slice& slice, const std::string& what) const {
  const std::string problem = slice_problem(slice);
  if (!problem.empty()) return misuse(what + ": " + problem);
  return {};
}

Result<void> CheckedDevice::upload(Slice to, std::span<const std::byte> bytes) {
  MILLRACE_TRY(check_slice(to, "upload"));
  if (to.bytes != bytes.size()) {
    return misuse(fmt::format("upload of {} bytes into {}", bytes.size(), show(to)));
  }
  return device_->upload(to, bytes);
}

Result<Ticket> CheckedDevice::download(Slice from) {
  MILLRACE_TRY(check_slice(from, "download"));
  return device_->download(from);
}

Result<void> CheckedDevice::copy(Slice to, Slice from) {
  MILLRACE_TRY(check_slice(to, "copy target"));
  MILLRACE_TRY(check_slice(from, "copy source"));
  if (to.bytes != from.bytes) {
    return misuse(fmt::format("copy between sizes: {} to {}", show(from), show(to)));
  }
  if (overlap(to, from)) {
    return misuse(fmt::format("copy between ranges that overlap: {} to {}", show(from), show(to)));
  }
  return device_->copy(to, from);
}

Result<void> CheckedDevice::fill(Slice to, uint32_t pattern) {
  MILLRACE_TRY(check_slice(to, "fill"));
  if (to.offset % 4 != 0 || to.bytes % 4 != 0) {
    return misuse(fmt::format("fill of {}: offset and bytes must be multiples of 4", show(to)));
  }
  return device_->fill(to, pattern);
}

std::string CheckedDevice::launch_problem(const Launch& launch) const {
  const KernelRow& row = kernel_row(launch.kernel);
  const std::string_view access(row.access);
  for (size_t i = 0; i < launch.bindings.size(); ++i) {
    const Binding& binding = launch.bindings[i];
    const char declared = declared_letter(access, i);
    if (declared == 0) {
      return fmt::format("binding {} is one too many: the row declares \"{}\"", i, access);
    }
    if (letter_of(binding.access) != declared) {
      return fmt::format("binding {} has access '{}', the row declares '{}'", i,
                         letter_of(binding.access), declared);
    }
    const std::string problem = slice_problem(binding.slice);
    if (!problem.empty()) return fmt::format("binding {}: {}", i, problem);
  }
  if (launch.bindings.size() < declared_least(access)) {
    return fmt::format("binding {} is missing: the row declares \"{}\"", launch.bindings.size(),
                       access);
  }
  if (launch.params.size() != row.params_bytes) {
    return fmt::format("{} bytes of parameters, the row declares {}", launch.params.size(),
                       row.params_bytes);
  }
  if (launch.count.buffer) {
    const std::string problem = slice_problem(launch.count);
    if (!problem.empty()) return "count: " + problem;
    if (launch.count.bytes != 4 || launch.count.offset % 4 != 0) {
      return fmt::format("count: {} is not one aligned uint32", show(launch.count));
    }
  }
  return overlap_problem(launch);
}

std::string CheckedDevice::overlap_problem(const Launch& launch) {
  for (size_t i = 0; i < launch.bindings.size(); ++i) {
    const Binding& written = launch.bindings[i];
    if (written.access == Access::Read) continue;
    for (size_t j = 0; j < launch.bindings.size(); ++j) {
      if (j == i || !overlap(written.slice, launch.bindings[j].slice)) continue;
      return fmt::format("binding {} writes {}, which overlaps binding {}: {}", i,
                         show(written.slice), j, show(launch.bindings[j].slice));
    }
    if (launch.count.buffer && overlap(written.slice, launch.count)) {
      return fmt::format("binding {} writes {}, which overlaps the count", i, show(written.slice));
    }
  }
  return {};
}

Result<void> CheckedDevice::launch(const Launch& launch) {
  if (launch.kernel >= KernelId::kCount) {
    return misuse(fmt::format("launch of kernel number {}, which does not exist, at {}:{}",
                              static_cast<int>(launch.kernel), launch.site.file_name(),
                              launch.site.line()));
  }
  const std::string problem = launch_problem(launch);
  if (!problem.empty()) {
    return misuse(fmt::format("launch of {} at {}:{}: {}", kernel_row(launch.kernel).name,
                              launch.site.file_name(), launch.site.line(), problem));
  }
  return device_->launch(launch);
}

Result<void> CheckedDevice::wait_blocking(Point point, const WaitSite& site) {
  const Point last = device_->submit();
  if (point > last) {
    return misuse(
        fmt::format("wait '{}' for point {}, but only {} are queued", site.name, point, last));
  }
  return device_->wait_blocking(point, site);
}

}  // namespace

std::unique_ptr<Device> make_checked(std::unique_ptr<Device> device) {
  return std::make_unique<CheckedDevice>(std::move(device));
}

}  // namespace millrace
