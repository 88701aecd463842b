// The device that lets a stand-in record its work around the launches of a step.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "tensor/launch.h"
#include "tensor/ops.h"
#include "train/schedule.h"
#include "train/stand_in.h"

namespace millrace::test {
namespace {

constexpr uint32_t kStepWords = sizeof(StepBlock) / 4;

class StandInDevice;
StandInDevice* newest = nullptr;

class StandInDevice final : public Device {
 public:
  explicit StandInDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {
    newest = this;
  }
  ~StandInDevice() override {
    EXPECT_EQ(stand_in_, nullptr) << "the stand-in's tensors outlive their device";
    newest = nullptr;
  }
  void set(StandIn* stand_in) {
    stand_in_ = stand_in;
    attempt_.reset();
  }
  bool has(const StandIn* stand_in) const { return stand_in_ == stand_in; }
  Device& below() { return *inner_; }

  Result<void> upload(Slice to, std::span<const std::byte> bytes) override {
    if (stand_in_ == nullptr || bytes.size() != sizeof(StepBlock)) return inner_->upload(to, bytes);
    StepBlock block;
    std::memcpy(&block, bytes.data(), sizeof(block));
    stand_in_->complete(block);
    blocks_[to.buffer.value] = block;
    return inner_->upload(to, std::as_bytes(std::span(&block, 1)));
  }

  Result<void> launch(const Launch& launch) override {
    if (stand_in_ == nullptr) return inner_->launch(launch);
    const auto slice = [&](size_t i) { return launch.bindings[i].slice; };
    if (launch.kernel == KernelId::project) begin(slice(0));
    if (attempt_) {
      if (launch.kernel == KernelId::photometric_forward) {
        attempt_->image = slice(2);
        attempt_->target = slice(3);
        attempt_->open = opened(slice(1));
        stand_in_->before_loss(*attempt_);
      }
      if (launch.kernel == KernelId::commit_step) {
        stand_in_->commit(*attempt_);
        attempt_.reset();
      }
    }
    MILLRACE_TRY(inner_->launch(launch));
    if (attempt_ && launch.kernel == KernelId::photometric_backward) {
      attempt_->d_image = slice(7);
      stand_in_->after_loss(*attempt_);
    }
    return {};
  }

  const DeviceInfo& info() const override { return inner_->info(); }
  Result<BufferId> allocate(uint64_t bytes, const char* label) override {
    return inner_->allocate(bytes, label);
  }
  void release(BufferId buffer) override { inner_->release(buffer); }
  Result<Ticket> download(Slice from) override { return inner_->download(from); }
  Result<void> copy(Slice to, Slice from) override { return inner_->copy(to, from); }
  Result<void> fill(Slice to, uint32_t pattern) override { return inner_->fill(to, pattern); }
  Point submit() override { return inner_->submit(); }
  Point poll() override { return inner_->poll(); }
  Result<void> wait_blocking(Point point, const WaitSite& site) override {
    return inner_->wait_blocking(point, site);
  }
  WaitLedger& ledger() override { return inner_->ledger(); }
  MemoryStats memory() const override { return inner_->memory(); }
  void limit_memory(uint64_t bytes) override { inner_->limit_memory(bytes); }
  QueueStats queue() const override { return inner_->queue(); }
  void set_trace(TraceRecorder* trace) override { inner_->set_trace(trace); }

 private:
  // An attempt at the step whose block lies in `step`; none if that is no step's.
  void begin(const Slice& step) {
    attempt_.reset();
    const auto found = blocks_.find(step.buffer.value);
    if (found == blocks_.end() || kind_of(found->second.transaction) != TransactionKind::Step) {
      return;
    }
    attempt_.emplace(Attempt{*inner_, found->second, {}, {}, {}, {}, {}});
    attempt_->step = Tensor::empty(*inner_, Shape{kStepWords}, Dtype::U32, "stand-in");
    inner_->copy(attempt_->step.slice(), step).or_raise();
    blocks_.erase(found);
    stand_in_->begin(*attempt_);
  }

  // Whether the gate has accepted the attempt: both words of the two transaction numbers agree.
  Tensor opened(const Slice& control) {
    const Tensor accepted = Tensor::empty(*inner_, Shape{2}, Dtype::U32, "stand-in");
    static_assert(offsetof(Gate, accepted) == 0 && offsetof(StepBlock, transaction) == 0);
    inner_->copy(accepted.slice(), {control.buffer, control.offset, 8}).or_raise();
    return reduce_min(eq(accepted, attempt_->step.slice(0, 0, 2)));
  }

  std::unique_ptr<Device> inner_;
  StandIn* stand_in_ = nullptr;
  std::map<uint32_t, StepBlock> blocks_;  // by buffer, until the attempt begins
  std::optional<Attempt> attempt_;
};

Result<std::unique_ptr<Device>> open(const std::string& id) {
  MILLRACE_ASSIGN(std::unique_ptr<Device> inner, open_device(id));
  return std::unique_ptr<Device>(std::make_unique<StandInDevice>(make_checked(std::move(inner))));
}

constexpr Backend kBackend{"stand-in", [] { return std::vector<DeviceInfo>(); }, &open};
[[maybe_unused]] const bool kRegistered = register_backend(&kBackend);

}  // namespace

StandIn::~StandIn() {
  if (newest != nullptr && newest->has(this)) newest->set(nullptr);
}

void attach(StandIn& stand_in) { newest->set(&stand_in); }

Device& device_below() { return newest->below(); }

Tensor Attempt::taken(const Slice& slice, Dtype dtype) const {
  Tensor copy = Tensor::empty(device, Shape{3, n_pixels()}, dtype, "stand-in");
  device.copy(copy.slice(), slice).or_raise();
  return copy;
}

void Attempt::give(const Slice& slice, const Tensor& values) const {
  device.copy(slice, values.slice()).or_raise();
}

}  // namespace millrace::test
