// Stand-ins: features to come (appearance models, masks, crop box, controller) as far as waits and
// replays see them. Each records its work around the launches of the trainer's real steps.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/splat_params.h"
#include "tensor/tensor.h"

namespace millrace::test {

/// One attempt at a step, as a stand-in sees it. Tensors are of the device below the trainer's.
struct Attempt {
  Device& device;
  StepBlock block;  // what the host uploaded
  Tensor step;      // the same on the device, as words [26] U32
  Tensor open;      // [1] U32: 1 if the gate accepted this attempt; from before_loss() on
  Slice image, target, d_image;  // the workspace's: [3,H,W] F32, U8 and F32

  uint64_t n_pixels() const { return image.bytes / 12; }
  /// A copy of a range of the trainer's, as [3, H W].
  Tensor taken(const Slice& slice, Dtype dtype) const;
  /// Overwrites a range of the trainer's.
  void give(const Slice& slice, const Tensor& values) const;
};

class StandIn {
 public:
  StandIn() = default;
  virtual ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  /// Before the step block goes to the device.
  virtual void complete(StepBlock&) {}
  /// Before the first kernel of the attempt.
  virtual void begin(const Attempt&) {}
  /// The image is rendered, and garbage if the gate is closed.
  virtual void before_loss(const Attempt&) {}
  /// Loss and d_image are there.
  virtual void after_loss(const Attempt&) {}
  /// Before the step's own commit.
  virtual void commit(const Attempt&) {}
};

/// Prefix of a device id: "stand-in:cpu:2,lazy" is that device with a place for a stand-in.
inline constexpr const char* kStandInPrefix = "stand-in:";
/// Attaches `stand_in` to the device of that kind that was opened last. It must go before the
/// device does.
void attach(StandIn& stand_in);
/// The device below, for a stand-in's own tensors.
Device& device_below();

/// What a planted fault leaves out.
enum class GateUse : uint8_t { Obeyed, Ignored, Multiplied };

/// [values n, first moments n, second moments n, steps, last step] F32: a record with its own Adam.
uint32_t record_size(uint32_t n_values);
/// One Adam step of `record` with `gradient` [n]; nothing behind a closed gate, unless `use` says
/// that a fault is planted.
void adam_record(const Attempt& attempt, const Tensor& record, const Tensor& gradient, GateUse use);

/// A gain per channel between the renderer and the loss.
class ImageGain {
 public:
  /// image <- image exp(log_gain), log_gain [3].
  void apply(const Attempt& attempt, const Tensor& log_gain);
  /// d_image <- that of the raw image, which comes back too; returns dLoss/d(log_gain) [3].
  Tensor backward(const Attempt& attempt);

 private:
  Tensor raw_, gain_, exposed_;
};

/// Exposure per view: one record each, worked on in two slots with storage of their own. Which
/// record lies in which slot follows the order of the queue; evictions and loads are queued copies.
class AppearanceStandIn final : public StandIn {
 public:
  enum class Fault : uint8_t { None, NoGate, GateByProduct, MapRewound, GradientKept };
  AppearanceStandIn(uint32_t n_views, Fault fault);

  void begin(const Attempt& attempt) override;
  void before_loss(const Attempt& attempt) override;
  void after_loss(const Attempt& attempt) override;
  void commit(const Attempt& attempt) override;

  /// All records, [views, record_size(3)], once everything ran.
  std::vector<float> records_blocking();
  uint64_t n_evictions() const { return n_evictions_; }

 private:
  static constexpr uint32_t kNoView = ~0u;
  struct Slot {
    uint32_t view = kNoView;
    uint64_t last_use = 0;
  };

  uint32_t bind(uint32_t view);

  Fault fault_;
  Tensor home_;      // [views, record]: where a record lies while it has no slot
  Tensor slots_[2];  // [record]
  std::vector<Slot> map_;
  std::vector<std::vector<Slot>> maps_;  // before each step: for the fault that rewinds
  uint32_t bound_ = 0;
  uint64_t n_bound_ = 0, n_evictions_ = 0;
  Tensor gradient_;  // [3]
  ImageGain gain_;
};

/// From `first_step` on a controller sees the raw image and sets the gain.
class ControllerStandIn final : public StandIn {
 public:
  ControllerStandIn(uint32_t first_step, GateUse use);

  void before_loss(const Attempt& attempt) override;
  void after_loss(const Attempt& attempt) override;
  void commit(const Attempt& attempt) override;

  /// Its record, once everything ran.
  std::vector<float> record_blocking();

 private:
  bool runs(const Attempt& attempt) const { return attempt.block.step >= first_step_; }

  uint32_t first_step_;
  GateUse use_;
  Tensor record_;
  Tensor features_;  // [3]: means of the raw image's channels
  Tensor gradient_;
  ImageGain gain_;
};

/// The mask version and crop box (a count of columns) that hold from a step on.
struct Crop {
  uint32_t step, version, columns;
};

/// A masked, cropped L1 loss: its denominator is the number of pixels that count.
class DenominatorStandIn final : public StandIn {
 public:
  enum class Source : uint8_t {
    Device,      // reduced in every attempt
    Host,        // counted by the host for every attempt: the uncached run
    Cached,      // reduced once: a fault
    NewestEdit,  // on the device, but replays see the newest edit: a fault
  };
  static constexpr uint32_t kVersions = 2, kRing = 16;
  DenominatorStandIn(uint32_t width, uint32_t height, Source source);

  /// Holds from its step on, which must not have been recorded.
  void add(const Crop& edit) { log_.push_back(edit); }

  void complete(StepBlock& block) override;
  void after_loss(const Attempt& attempt) override;

  /// The losses of the last kRing committed steps, by step, once everything ran.
  std::vector<float> losses_blocking();

 private:
  Crop at(uint32_t step) const;
  Tensor denominator(const Attempt& attempt, const Tensor& weights);

  uint32_t width_, height_;
  Source source_;
  std::vector<Crop> log_;
  std::vector<float> host_masks_;
  Tensor masks_;    // [versions, H W] F32, immutable
  Tensor columns_;  // [H W] U32: the column of each pixel
  Tensor cached_;
  Tensor ring_;  // [kRing] F32
};

}  // namespace millrace::test
