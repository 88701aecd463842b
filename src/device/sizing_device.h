// SizingDevice: a device that runs nothing and holds nothing, so that the code that allocates for
// a run says beforehand how much it takes.
#pragma once

#include <algorithm>
#include <memory>

#include "device/buffer_store.h"
#include "device/device.h"
#include "device/ticket_pool.h"

namespace millrace {

/// Buffers, blocks and staging are chosen as a device chooses them, and counted, but have no
/// memory: what is uploaded is not read, kernels do not run, and a ticket has no value. A point has
/// passed once it was waited for or pass() says so: the caller decides how far the device lags. Not
/// thread-safe.
class SizingDevice final : public Device {
 public:
  /// `ring_bytes`: of the staging ring, which is counted; 0 where staging is not device memory.
  explicit SizingDevice(uint64_t ring_bytes);

  const DeviceInfo& info() const override { return info_; }
  Result<BufferId> allocate(uint64_t bytes, const char* label) override {
    return store_.allocate(bytes, label, passed_);
  }
  void release(BufferId buffer) override { store_.release(buffer); }
  Result<void> upload(Slice to, std::span<const std::byte> bytes) override;
  Result<Ticket> download(Slice from) override;
  Result<void> launch(const Launch& launch) override;
  Result<void> copy(Slice to, Slice from) override;
  Result<void> fill(Slice to, uint32_t pattern) override;
  Point submit() override { return queued_; }
  Point poll() override { return passed_; }
  Result<void> wait_blocking(Point point, const WaitSite&) override {
    pass(point);
    return {};
  }
  /// Work up to `point` is taken to have run.
  void pass(Point point) { passed_ = std::max(passed_, point); }
  WaitLedger& ledger() override { return ledger_; }
  MemoryStats memory() const override { return store_.stats(); }
  void limit_memory(uint64_t bytes) override { store_.set_limit(bytes); }
  QueueStats queue() const override { return {}; }

  /// Bytes of all downloads so far.
  uint64_t downloaded_bytes() const { return downloaded_bytes_; }

 private:
  /// Numbers instead of addresses.
  class NoMemory final : public BlockSource {
   public:
    Result<uint64_t> create(uint64_t) override { return ++last_; }
    void destroy(uint64_t, uint64_t) override {}

   private:
    uint64_t last_ = 0;
  };

  Result<void> use(const Slice& slice, Access access);

  DeviceInfo info_;
  WaitLedger ledger_;
  std::shared_ptr<TicketPool> tickets_ = TicketPool::make();
  NoMemory memory_;
  bool stages_;
  BufferStore store_;
  Point queued_ = 0, passed_ = 0;
  uint64_t downloaded_bytes_ = 0;
};

}  // namespace millrace
