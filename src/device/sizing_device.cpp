// The verbs of a device without memory.
#include "device/sizing_device.h"

namespace millrace {
namespace {

Block ring_block(uint64_t bytes) { return {.handle = 0, .bytes = bytes, .requested = bytes}; }

}  // namespace

SizingDevice::SizingDevice(uint64_t ring_bytes)
    : info_{.id = "sizing", .name = "no device", .memory_bytes = UINT64_MAX},
      stages_(ring_bytes > 0),
      store_(&memory_, UINT64_MAX, ring_block(ring_bytes), "sizing device") {}

// Notes a use by the command that is being recorded.
Result<void> SizingDevice::use(const Slice& slice, Access access) {
  MILLRACE_ASSIGN(StoredBuffer * buffer, store_.find(slice.buffer, "sizing"));
  BufferStore::note(slice, buffer, access, queued_ + 1, passed_);
  return {};
}

Result<void> SizingDevice::upload(Slice to, std::span<const std::byte> bytes) {
  MILLRACE_ASSIGN(const StoredBuffer* buffer, store_.find(to.buffer, "upload"));
  if (bytes.empty() || buffer->hazards.last_use(to.offset, to.bytes) <= passed_) return {};
  if (stages_) {
    MILLRACE_TRY(store_.stage(bytes.size(), queued_ + 1, passed_));
  }
  MILLRACE_TRY(use(to, Access::Write));
  ++queued_;
  return {};
}

Result<Ticket> SizingDevice::download(Slice from) {
  MILLRACE_TRY(use(from, Access::Read));
  downloaded_bytes_ += from.bytes;
  return Ticket(tickets_->take(0, ++queued_));
}

Result<void> SizingDevice::launch(const Launch& launch) {
  for (const Binding& binding : launch.bindings) {
    MILLRACE_TRY(use(binding.slice, binding.access));
  }
  if (launch.count.buffer) MILLRACE_TRY(use(launch.count, Access::Read));
  ++queued_;
  return {};
}

Result<void> SizingDevice::copy(Slice to, Slice from) {
  MILLRACE_TRY(use(from, Access::Read));
  MILLRACE_TRY(use(to, Access::Write));
  ++queued_;
  return {};
}

Result<void> SizingDevice::fill(Slice to, uint32_t) {
  MILLRACE_TRY(use(to, Access::Write));
  ++queued_;
  return {};
}

}  // namespace millrace
