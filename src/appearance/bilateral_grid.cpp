// Where bilateral grids lie, and their launches.
#include "appearance/bilateral_grid.h"

#include <algorithm>
#include <cstring>

#include "tensor/launch.h"

namespace millrace {
namespace {

constexpr const char* kLabel = "appearance";
// Channels of an affine grid that the identity has at 1.
constexpr uint32_t kDiagonal[] = {0, 5, 10};

template <class T>
std::vector<T> values_of(const Ticket& ticket) {
  std::vector<T> values(ticket.bytes().size() / sizeof(T));
  std::memcpy(values.data(), ticket.bytes().data(), ticket.bytes().size());
  return values;
}

}  // namespace

bool GridsSnapshot::ready() const {
  const auto is_there = [](const Ticket& ticket) { return !ticket || ticket.ready(); };
  return offset_.ready() && last_.ready() && std::ranges::all_of(grids_, is_there);
}
std::vector<float> GridsSnapshot::offset() const { return values_of<float>(offset_); }
std::vector<uint32_t> GridsSnapshot::last_updates() const { return values_of<uint32_t>(last_); }
std::vector<float> GridsSnapshot::of(uint32_t image) const {
  if (grids_[image]) return values_of<float>(grids_[image]);
  std::vector<float> values(BilateralGrids::slot_bytes(mode_) / sizeof(float));
  if (mode_ == GridMode::Affine) {
    for (const uint32_t c : kDiagonal) {
      std::fill_n(values.begin() + static_cast<int64_t>(c * kGridCells), kGridCells, 1.0f);
    }
  }
  return values;
}

BilateralGrids::BilateralGrids(Device& device, GridMode mode, uint32_t n_images,
                               uint64_t budget_bytes)
    : device_(&device), mode_(mode) {
  homes_.resize(n_images);
  const uint64_t fit = std::max<uint64_t>(budget_bytes / slot_bytes(mode), kMinSlots);
  slots_.resize(std::min<uint64_t>(fit, n_images));
  for (Slot& slot : slots_) slot.storage = make_slot();
  offset_ = Tensor::zeros(device, Shape{kGridMaxChannels}, Dtype::F32, kLabel);
  last_ = Tensor::zeros(device, Shape{n_images}, Dtype::U32, kLabel);
  gradient_ = Tensor::empty(device, Shape{channels(), kGridCells}, Dtype::F32, kLabel);
  partials_ =
      Tensor::empty(device, Shape{kGridAreas * kGridParts, kGridPartialFloats}, Dtype::F32, kLabel);
  // If all fit, nothing ever moves.
  for (uint32_t image = 0; image < n_images && slots_.size() == n_images; ++image) {
    load(image, image);
  }
}

GridParams BilateralGrids::params(uint32_t width, uint32_t height) const {
  return {width, height, channels(), static_cast<uint32_t>(homes_.size())};
}

Tensor BilateralGrids::make_slot() const {
  return Tensor::empty(*device_, Shape{3, channels(), kGridCells}, Dtype::F32, kLabel);
}

uint32_t BilateralGrids::free_slot() const {
  const auto found = std::ranges::find(slots_, kNone, &Slot::image);
  return found == slots_.end() ? kNone : static_cast<uint32_t>(found - slots_.begin());
}

// As the image's grid lies on the host, or as it began.
void BilateralGrids::fill(const Tensor& storage, const Home& home) const {
  if (home.contents) {
    const std::span<const std::byte> bytes = home.contents.bytes();
    storage.upload(
        std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)));
  } else {
    storage.fill_(0);
    if (mode_ == GridMode::Affine) {
      for (const uint32_t c : kDiagonal) storage.select(0, 0).select(0, c).fill_(1);
    }
  }
}

void BilateralGrids::load(uint32_t image, uint32_t slot) {
  Home& home = homes_[image];
  fill(slots_[slot].storage, home);
  n_loads_ += home.contents ? 1 : 0;
  home.contents = Ticket();
  home.slot = slot;
  slots_[slot].image = image;
}

// What has arrived in host memory gives up its slot.
void BilateralGrids::settle() {
  for (Slot& slot : slots_) {
    if (!slot.leaving || !slot.leaving.ready()) continue;
    homes_[slot.image].slot = kNone;
    homes_[slot.image].contents = std::move(slot.leaving);
    slot.leaving = Ticket();
    slot.image = kNone;
  }
}

// Sends grids to the host until kSpare slots are free or about to be. Views come in permutations:
// the grid that was just in use is the one that is wanted last.
void BilateralGrids::make_spare(std::span<const uint32_t> upcoming) {
  if (slots_.size() >= homes_.size()) return;
  const auto is_spare = [](const Slot& slot) { return slot.image == kNone || slot.leaving; };
  for (auto n = std::ranges::count_if(slots_, is_spare); n < int64_t{kSpare}; ++n) {
    Slot* victim = nullptr;
    for (Slot& slot : slots_) {
      if (is_spare(slot) || slot.image == bound_) continue;
      if (std::ranges::find(upcoming, slot.image) != upcoming.end()) continue;
      if (!victim || slot.last_bound > victim->last_bound) victim = &slot;
    }
    if (!victim) return;
    victim->leaving = read_later(victim->storage);
    ++n_write_backs_;
  }
}

void BilateralGrids::bind(uint32_t image, std::span<const uint32_t> upcoming) {
  settle();
  upcoming = upcoming.first(std::min<size_t>(upcoming.size(), kAhead));
  const auto bring = [&](uint32_t wanted, bool at_once) {
    if (homes_[wanted].slot != kNone) {
      slots_[homes_[wanted].slot].leaving = Ticket();  // it stays
      return;
    }
    uint32_t slot = free_slot();
    if (slot == kNone) {
      if (!at_once) return;
      // Only after a jump to steps that nobody announced: more memory rather than a wait.
      slot = static_cast<uint32_t>(slots_.size());
      slots_.push_back({.storage = make_slot()});
    }
    load(wanted, slot);
  };
  bring(image, true);
  bound_ = image;
  slots_[homes_[image].slot].last_bound = ++n_bound_;
  for (const uint32_t next : upcoming) bring(next, false);
  make_spare(upcoming);
}

void BilateralGrids::forward(const Frame& frame, const Tensor& shown) const {
  launch(*device_, KernelId::grid_slice_forward, kGridAreas * kGridParts,
         {read(frame.step), read(frame.control), read(slot_of_bound()), read(offset_),
          read(frame.image), write(shown)},
         params(frame.width, frame.height));
}

void BilateralGrids::backward(const Frame& frame, const Tensor& d_image) const {
  launch(*device_, KernelId::grid_slice_backward, kGridAreas * kGridParts,
         {read(frame.step), read(frame.control), read(slot_of_bound()), read(offset_),
          read(frame.image), millrace::update(d_image), write(partials_), write(gradient_)},
         params(frame.width, frame.height));
}

void BilateralGrids::update(const Tensor& step, const Tensor& control) const {
  launch(*device_, KernelId::grid_update, channels(),
         {read(step), read(control), read(gradient_), millrace::update(slot_of_bound()),
          millrace::update(offset_), millrace::update(last_)},
         params(0, 0));
}

GridsSnapshot BilateralGrids::snapshot() const {
  GridsSnapshot snapshot;
  snapshot.mode_ = mode_;
  snapshot.offset_ = read_later(offset_);
  snapshot.last_ = read_later(last_);
  for (const Home& home : homes_) {
    snapshot.grids_.push_back(home.slot == kNone ? home.contents
                                                 : read_later(slots_[home.slot].storage));
  }
  return snapshot;
}

std::vector<Tensor> BilateralGrids::state() const {
  std::vector<Tensor> state = {offset_, last_};
  for (const Home& home : homes_) {
    if (home.slot != kNone) {
      state.push_back(slots_[home.slot].storage);
      continue;
    }
    state.push_back(make_slot());
    fill(state.back(), home);
  }
  return state;
}

}  // namespace millrace
