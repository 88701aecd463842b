// Bilateral grids: one per training image, learnt beside the Gaussians (TRAINING.md 5.2), and where
// they lie. Those that fit stay on the device; the others wait in host memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/appearance_params.h"
#include "tensor/tensor.h"

namespace millrace {

enum class GridMode : uint32_t {
  Affine = kGridAffineChannels,            // a colour transform [3,4]
  ExposureChroma = kGridExposureChannels,  // exposure and PPISP's colour latents, on its output
};

/// The grids at one place in queue order. Read it once all that was queued before has run.
class GridsSnapshot {
 public:
  /// [3,C,8,16,16]: values, first and second moments. `image`: of the training images.
  std::vector<float> of(uint32_t image) const;
  std::vector<float> offset() const;           // [kGridMaxChannels], shared by all images
  std::vector<uint32_t> last_updates() const;  // [images] number of each one's last update, from 1
  bool ready() const;

 private:
  friend class BilateralGrids;
  GridMode mode_ = GridMode::Affine;
  Ticket offset_, last_;
  std::vector<Ticket> grids_;  // none where a grid is as it began
};

/// Each grid lies with its moments in a slot with storage of its own, so that no transfer of one
/// has to wait for work on another. Which grid lies where follows the order of the queue and not
/// what the gate accepts: a replay may bind them in any order. Nothing here waits.
class BilateralGrids {
 public:
  /// Slots with which no transfer is ever in the way: the runs ahead, what is loaded before its
  /// turn, and as many on their way to the host.
  static constexpr uint32_t kAhead = 2;
  static constexpr uint32_t kSpare = 6;
  static constexpr uint32_t kMinSlots = 12;

  BilateralGrids() = default;
  /// Identities. As many slots as `budget_bytes` hold, at least kMinSlots.
  BilateralGrids(Device& device, GridMode mode, uint32_t n_images, uint64_t budget_bytes);

  bool is_on() const { return !homes_.empty(); }
  static uint64_t slot_bytes(GridMode mode) {
    return uint64_t{3} * static_cast<uint32_t>(mode) * kGridCells * sizeof(float);
  }

  /// Before a step on `image`: brings its grid to the device, then those of `upcoming`, the next
  /// steps' images in order, as far as there is room, and has others leave.
  void bind(uint32_t image, std::span<const uint32_t> upcoming);

  /// One frame of the image that was bound last; its number is in the step block too.
  struct Frame {
    const Tensor& step;     // step block
    const Tensor& control;  // control record
    const Tensor& image;    // [3,H,W] F32, what the grid is applied to
    uint32_t width, height;
  };
  /// Writes the image as its grid shows it, [3,H,W].
  void forward(const Frame& frame, const Tensor& shown) const;
  /// From dLoss/dshown to dLoss/dimage in place, and to the grid's gradient.
  void backward(const Frame& frame, const Tensor& d_image) const;
  /// One Adam step on the bound grid. Nothing of it behind a closed gate.
  void update(const Tensor& step, const Tensor& control) const;

  GridsSnapshot snapshot() const;
  /// All that lasts, in the order in which it is hashed: the shared offset, the images' last
  /// updates, and each image's [3,C,2048]; a copy on the device of what lies on the host.
  std::vector<Tensor> state() const;

  /// [3,C,2048] of the image that was bound last; [kGridMaxChannels]; [C,2048] of the last frame.
  const Tensor& slot_of_bound() const { return slots_[homes_[bound_].slot].storage; }
  const Tensor& shared_offset() const { return offset_; }
  const Tensor& gradient() const { return gradient_; }
  uint32_t n_slots() const { return static_cast<uint32_t>(slots_.size()); }
  uint64_t n_loads() const { return n_loads_; }
  uint64_t n_write_backs() const { return n_write_backs_; }

 private:
  static constexpr uint32_t kNone = ~0u;
  struct Slot {
    Tensor storage;  // [3,C,8,16,16]
    uint32_t image = kNone;
    uint64_t last_bound = 0;
    Ticket leaving = {};  // its contents, while on their way to the host
  };
  struct Home {
    uint32_t slot = kNone;
    Ticket contents;  // while it has no slot; none: as it began
  };

  uint32_t channels() const { return static_cast<uint32_t>(mode_); }
  GridParams params(uint32_t width, uint32_t height) const;
  Tensor make_slot() const;
  void fill(const Tensor& storage, const Home& home) const;
  uint32_t free_slot() const;
  void load(uint32_t image, uint32_t slot);
  void settle();
  void make_spare(std::span<const uint32_t> upcoming);

  Device* device_ = nullptr;
  GridMode mode_ = GridMode::Affine;
  std::vector<Slot> slots_;
  std::vector<Home> homes_;  // [images]
  uint32_t bound_ = kNone;   // image
  uint64_t n_bound_ = 0, n_loads_ = 0, n_write_backs_ = 0;
  Tensor offset_;    // [kGridMaxChannels] F32
  Tensor last_;      // [images] U32
  Tensor gradient_;  // [C,8,16,16] F32, of the frame in flight
  Tensor partials_;  // [areas parts, kGridPartialFloats] F32
};

}  // namespace millrace
