// Prediction, growth and bands (ARCHITECTURE.md section 4: cheap closing).
#include "train/instance_room.h"

#include <algorithm>

#include "base/philox.h"
#include "train/train_memory.h"

namespace millrace {
namespace {

constexpr uint64_t kGrowthFloor = 65536;  // instances
constexpr uint64_t kMostInstances = 1ull << 30;

uint64_t grown(uint64_t need) { return std::max(need + need / 4, need + kGrowthFloor); }

uint64_t instances_within(uint64_t bytes) {
  return std::max<uint64_t>(bytes / instance_bytes(/*with_gradients=*/true), 1);
}

}  // namespace

InstanceRoom::InstanceRoom(Device& device, const TrainOptions& options, Workspace& workspace,
                           size_t n_views)
    : device_(device),
      options_(options),
      workspace_(workspace),
      views_(n_views),
      forced_used_(options.test_capacity.size()) {}

void InstanceRoom::set_view_count(size_t n_views) { views_.resize(n_views); }

// What the budget, the device's memory and 32-bit slots leave for instances.
uint64_t InstanceRoom::limit() const {
  uint64_t limit = kMostInstances;
  if (options_.instance_budget > 0)
    limit = std::min(limit, instances_within(options_.instance_budget));
  const MemoryStats memory = device_.memory();
  const uint64_t total = memory.limit_bytes;
  const uint64_t ours = workspace_.instances.capacity * instance_bytes(true);
  const uint64_t others = memory.in_use_bytes - std::min(ours, memory.in_use_bytes);
  if (total > 0)
    limit = std::min(limit, instances_within((total - std::min(others, total)) / 10 * 9));
  return limit;
}

// The view's high-water mark, scaled by how much the model has grown since, and a quarter.
uint64_t InstanceRoom::predicted(const View& view, uint64_t rows) const {
  if (view.rows == 0) return 0;
  const double growth = static_cast<double>(rows) / static_cast<double>(view.rows);
  return static_cast<uint64_t>(static_cast<double>(view.instances) * growth * 1.25);
}

Result<void> InstanceRoom::grow_blocking(uint64_t capacity, bool gate_is_closed) {
  InstanceBuffers& instances = workspace_.instances;
  if (capacity <= instances.capacity) return {};
  instances = InstanceBuffers();  // first, so that both are never held
  if (gate_is_closed) {
    // What is queued does nothing and ends at once; then the old room is given back.
    MILLRACE_TRY(device_.wait_blocking(device_.submit(), {WaitReason::Replay, "trainer.grow"}));
  } else {
    MILLRACE_TRY(make_device_room_blocking(
        device_, instance_room_bytes(capacity, workspace_.pixels.n_tiles)));
  }
  instances = make_instance_buffers(device_, capacity, workspace_.pixels.n_tiles, true);
  return {};
}

Result<uint32_t> InstanceRoom::ensure_blocking(uint32_t number, uint64_t rows) {
  const View& view = views_[number];
  const uint64_t wanted = predicted(view, rows);
  uint32_t n_bands = view.rows == 0 ? most_bands_ : view.bands;
  if (wanted > workspace_.instances.capacity) {
    // The limit is asked for until it binds, not in every step of a run that lives with bands.
    if (!at_limit_) {
      const uint64_t most = limit();
      MILLRACE_TRY(grow_blocking(std::min(wanted, most), /*gate_is_closed=*/false));
      at_limit_ = wanted > most;
    }
    // Each band but the last may lack room for one tile more: a quarter and one band to spare.
    const uint64_t capacity = workspace_.instances.capacity;
    if (wanted > capacity) {
      const uint64_t bands = wanted * 5 / 4 / capacity + 2;
      n_bands = static_cast<uint32_t>(std::clamp<uint64_t>(bands, n_bands, kMaxBands));
    }
  }
  most_bands_ = std::max(most_bands_, n_bands);
  return n_bands;
}

// Placement stays as it is: only the kernels are told of the cut.
uint64_t InstanceRoom::attempt_capacity(uint64_t transaction, uint32_t view) {
  const uint32_t step = step_of(transaction);
  const bool trains = kind_of(transaction) == TransactionKind::Step;
  for (size_t i = 0; trains && i < options_.test_capacity.size(); ++i) {
    if (options_.test_capacity[i].step != step || forced_used_[i]) continue;
    forced_used_[i] = true;
    return std::max<uint64_t>(options_.test_capacity[i].capacity, 1);
  }
  const bool is_new = random_drawn_ == kNoTransaction || transaction > random_drawn_;
  if (options_.test_capacity_random > 0 && is_new) {
    random_drawn_ = transaction;
    const auto row = static_cast<uint32_t>(transaction);
    const auto words = philox(options_.seed, step, RandomPurpose::TestCapacity, row);
    if (uniform_open(words[0]) < options_.test_capacity_random) {
      const uint64_t need = std::max<uint64_t>(views_[view].instances, 1);
      return 1 + static_cast<uint64_t>(uniform_open(words[1]) * static_cast<float>(need));
    }
  }
  return 0;
}

void InstanceRoom::accepted(uint32_t number, uint64_t instances, uint64_t rows) {
  View& view = views_[number];
  view.instances = std::max(view.instances, instances);
  view.rows = std::max<uint64_t>(rows, 1);
}

Result<void> InstanceRoom::refused_blocking(uint64_t transaction, uint64_t instances) {
  if (instances > workspace_.instances.capacity) {
    MILLRACE_TRY(grow_blocking(std::min(grown(instances), limit()), /*gate_is_closed=*/true));
  }
  const uint32_t step = step_of(transaction);
  const bool at_step = kind_of(transaction) >= TransactionKind::Step;
  for (size_t i = 0; i < forced_used_.size(); ++i) {
    const uint32_t forced = options_.test_capacity[i].step;
    if (forced > step || (forced == step && !at_step)) forced_used_[i] = false;
  }
  random_drawn_ = transaction;
  return {};
}

void InstanceRoom::note_refused_frame(uint32_t number, uint32_t n_bands, uint64_t instances,
                                      uint64_t rows) {
  if (instances <= workspace_.instances.capacity) return;
  accepted(number, instances, rows);
  if (n_bands > 1) views_[number].bands = std::min(2 * n_bands, kMaxBands);
}

}  // namespace millrace
