// Budgets, and what is given up to keep them.
#include "train/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/host_memory.h"
#include "train/memory_sizing.h"
#include "train/memory_text.h"
#include "train/target_cache.h"
#include "train/train_memory.h"

namespace millrace {
namespace {

// Code that is read in later, stacks, and what the C library keeps.
constexpr uint64_t kProgramGrowth = uint64_t{13} << 20;
constexpr uint64_t kThreadGrowth = uint64_t{512} << 10;  // of each thread that computes
// Of what the machine has: the rest is for others, and for the system's own pages.
constexpr double kShareOfAvailable = 0.95;
// Frames in bands cost time, so room for instances ends at this part of what is expected.
constexpr uint64_t kMostBandsPlanned = 16;
constexpr uint64_t kLeastInstances = 1u << 16;
constexpr uint64_t kLeastCap = 1000;
// Of the device's memory, kept free: which blocks are free at a time is not the same in every run.
constexpr uint64_t kSparePart = 64;
// The photograph cache holds at least two targets and two decoded photographs.
constexpr uint64_t kLeastCached = 4;

uint64_t added(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }
uint64_t left(uint64_t budget, uint64_t used) { return budget - std::min(budget, used); }

/// The largest value in [low, high] for which `fits`, which holds for `low` and ends at some value.
uint64_t largest_that_fits(uint64_t low, uint64_t high, const std::function<bool(uint64_t)>& fits) {
  // A thousandth is near enough.
  while (high - low > std::max<uint64_t>(high / 1024, 1)) {
    const uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

class Planner {
 public:
  explicit Planner(const PlanInputs& inputs) : inputs_(inputs), options_(inputs.options) {
    const uint64_t has = added(inputs.available_bytes, inputs.resident_bytes);
    ram_ = has == UINT64_MAX ? has
                             : static_cast<uint64_t>(kShareOfAvailable * static_cast<double>(has));
    if (options_.ram_budget > 0) ram_ = std::min(ram_, options_.ram_budget);
    vram_ = inputs.device_bytes > 0 ? inputs.device_bytes : UINT64_MAX;
    if (options_.vram_budget > 0) vram_ = std::min(vram_, options_.vram_budget);
    settings_.max_cap = options_.max_cap;
    for (uint32_t step = 0; step < std::min(options_.iterations, options_.stop_refine); ++step) {
      settings_.max_cap = std::max(settings_.max_cap, inputs.schedule.max_cap(step));
    }
    settings_.image_cache_bytes = options_.image_cache_bytes;
    settings_.instance_budget = options_.instance_budget;
  }

  Result<MemoryPlan> plan();

 private:
  bool fits(const MemorySettings& settings);
  /// Whether it fits now, after giving up as little as `give_up` can.
  bool shrink_cache();
  bool shrink_instances();
  bool shrink_cap();
  uint64_t least_instances(uint64_t max_cap) const;
  uint64_t host_bytes(const RunSizes& sizes) const;
  uint64_t program_bytes() const {
    return inputs_.resident_bytes + kProgramGrowth +
           kThreadGrowth * static_cast<uint64_t>(inputs_.n_threads);
  }
  /// With what bands would take and some to spare.
  static uint64_t device_need(const RunSizes& sizes) {
    return sizes.device_peak_bytes + sizes.band_bytes + sizes.device_peak_bytes / kSparePart;
  }
  Error does_not_fit();
  MemoryPlan result();
  void add_lines(const RunSizes& sizes, MemoryPlan* plan) const;

  const PlanInputs& inputs_;
  const TrainOptions& options_;
  uint64_t ram_ = 0, vram_ = 0;
  MemorySettings settings_;
  std::vector<std::string> gave_up_;
};

// The program, and the larger of two times: while the model is made, and while it is trained, where
// all that may happen at once does.
uint64_t Planner::host_bytes(const RunSizes& s) const {
  uint64_t training = s.decodes_in_training ? s.decode_bytes + s.output_bytes
                                            : std::max(s.decode_bytes, s.output_bytes);
  uint64_t start = s.start_bytes;
  if (inputs_.shares_host_memory) start = left(start, s.device_peak_bytes - s.device_start_bytes);
  const uint64_t staging = inputs_.stages_in_its_pool ? 0 : inputs_.staging_bytes;
  return program_bytes() + staging + std::max(start, training);
}

bool Planner::fits(const MemorySettings& settings) {
  const RunSizes sizes = size_run(inputs_, settings);
  const uint64_t device = device_need(sizes);
  const uint64_t host = host_bytes(sizes) + (inputs_.shares_host_memory ? device : 0);
  return host <= ram_ && device <= vram_;
}

bool Planner::shrink_cache() {
  settings_.is_frugal = true;
  uint64_t total = 0;
  for (const View& view : inputs_.train_views) {
    total += uint64_t{3} * view.camera.width * view.camera.height;
  }
  const uint64_t asked = settings_.image_cache_bytes;
  const uint64_t most = std::min(total, asked);
  const uint64_t least = std::min(most, kLeastCached * largest_target_bytes(inputs_.train_views));
  const auto fits_with = [&](uint64_t bytes) {
    settings_.image_cache_bytes = bytes;
    return fits(settings_);
  };
  if (fits_with(asked)) {
    gave_up_.push_back(
        "reading ahead: fewer photographs are decoded ahead, and views are scored "
        "before more are rendered");
    return true;
  }
  const bool enough = fits_with(least);
  if (enough) settings_.image_cache_bytes = largest_that_fits(least, most, fits_with);
  if (!enough) settings_.image_cache_bytes = least;
  if (settings_.image_cache_bytes < most) {
    gave_up_.push_back(
        fmt::format("photograph cache: {} of {} that all photographs take; those that do not stay "
                    "are decoded again",
                    memory_text(settings_.image_cache_bytes), memory_text(total)));
  }
  return enough;
}

uint64_t Planner::least_instances(uint64_t max_cap) const {
  const uint64_t expected =
      expected_instances(most_rows(inputs_, max_cap), inputs_.start_instances);
  return std::max(kLeastInstances, expected / kMostBandsPlanned);
}

bool Planner::shrink_instances() {
  constexpr uint64_t kBytes = instance_bytes(/*with_gradients=*/true);
  const uint64_t expected =
      expected_instances(most_rows(inputs_, settings_.max_cap), inputs_.start_instances);
  const uint64_t asked = options_.instance_budget > 0 ? options_.instance_budget : UINT64_MAX;
  const uint64_t most = std::min(expected, asked / kBytes);
  const uint64_t least = std::min(most, least_instances(settings_.max_cap));
  const auto fits_with = [&](uint64_t instances) {
    settings_.instance_budget = instances * kBytes;
    return fits(settings_);
  };
  const bool enough = fits_with(least);
  const uint64_t instances = enough ? largest_that_fits(least, most, fits_with) : least;
  settings_.instance_budget = instances * kBytes;
  if (instances < most) {
    gave_up_.push_back(
        fmt::format("instances: room for {} ({}) of some {}; larger frames are drawn in bands, to "
                    "the same bits",
                    instances, memory_text(instances * kBytes), most));
  }
  return enough;
}

bool Planner::shrink_cap() {
  constexpr uint64_t kBytes = instance_bytes(/*with_gradients=*/true);
  const uint64_t most = settings_.max_cap;
  const uint64_t asked = settings_.instance_budget;
  const auto fits_with = [&](uint64_t cap) {
    settings_.max_cap = cap;
    settings_.instance_budget = std::min(asked, least_instances(cap) * kBytes);
    return fits(settings_);
  };
  const uint64_t least = std::min(most, kLeastCap);
  const bool enough = fits_with(least);
  const uint64_t cap = enough ? largest_that_fits(least, most, fits_with) : least;
  settings_.max_cap = cap;
  settings_.instance_budget = std::min(asked, least_instances(cap) * kBytes);
  if (cap < most) gave_up_.push_back(fmt::format("Gaussians: at most {} of {}", cap, most));
  return enough;
}

Error Planner::does_not_fit() {
  const RunSizes s = size_run(inputs_, settings_);
  const uint64_t device = device_need(s);
  const uint64_t host = host_bytes(s) + (inputs_.shares_host_memory ? device : 0);
  const bool ram_binds = host > ram_;
  const char* flag = ram_binds ? "--ram-budget" : "--vram-budget";
  const bool is_asked = (ram_binds ? options_.ram_budget : options_.vram_budget) > 0 &&
                        (ram_binds ? options_.ram_budget == ram_ : options_.vram_budget == vram_);
  const std::string have = memory_text(ram_binds ? ram_ : vram_);
  return {
      ErrorCode::OutOfMemory,
      fmt::format(
          "this run needs at least {} of {} memory, with the smallest photograph cache, room "
          "for instances and number of Gaussians (--max-cap {}), and {}. Train at a smaller size "
          "(-r 2 "
          "or --max-width), evaluate on fewer views, {}",
          memory_text(ram_binds ? host : device),
          ram_binds ? (inputs_.shares_host_memory ? "the machine's" : "host") : "device",
          settings_.max_cap,
          is_asked ? fmt::format("{} allows {}", flag, have) : fmt::format("{} can be had", have),
          is_asked ? fmt::format("or raise {}.", flag) : std::string("or free memory."))};
}

Result<MemoryPlan> Planner::plan() {
  bool enough = fits(settings_);
  if (!enough) {
    settings_.rows_at_once = true;  // costs nothing but the room itself
    enough = fits(settings_);
  }
  enough = enough || shrink_cache() || shrink_instances() || shrink_cap();
  if (!enough) return does_not_fit();
  return result();
}

void Planner::add_lines(const RunSizes& s, MemoryPlan* plan) const {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"photographs", "photographs"}, {"gaussians", "Gaussians"},   {"moments", "Adam moments"},
      {"instances", "instances"},     {"bands", "bands"},           {"pixels", "pixel buffers"},
      {"projected", "row buffers"},   {"refinement", "refinement"}, {"statistics", "statistics"},
  };
  uint64_t named = inputs_.stages_in_its_pool ? inputs_.staging_bytes : 0;
  for (const auto& [label, name] : kNames) {
    const auto found = s.by_label.find(label);
    const uint64_t bytes = found == s.by_label.end() ? 0 : found->second;
    if (bytes == 0) continue;
    named += bytes;
    plan->lines.push_back({name, 0, bytes});
  }
  plan->lines.push_back({"staging", inputs_.stages_in_its_pool ? 0 : inputs_.staging_bytes,
                         inputs_.stages_in_its_pool ? inputs_.staging_bytes : 0});
  plan->lines.push_back({"scratch and growth", 0, left(s.device_peak_bytes, named)});
  // What the lines name may be held at different times.
  uint64_t sum = 0;
  for (const MemoryLine& line : plan->lines) sum += line.device_bytes;
  plan->device_bytes = sum;
  plan->lines.push_back({"evaluation and saving", s.output_bytes, 0});
  const uint64_t decoding =
      s.decodes_in_training ? s.decode_bytes : left(s.decode_bytes, s.output_bytes);
  plan->lines.push_back({"program and decoding", program_bytes() + decoding, 0});
  sum = 0;
  for (const MemoryLine& line : plan->lines) sum += line.host_bytes;
  plan->host_bytes = host_bytes(s);
  if (plan->host_bytes > sum) {
    plan->lines.push_back({"making the model", plan->host_bytes - sum, 0});
  }
}

MemoryPlan Planner::result() {
  const RunSizes s = size_run(inputs_, settings_);
  MemoryPlan plan;
  plan.shares_host_memory = inputs_.shares_host_memory;
  add_lines(s, &plan);
  plan.ram_budget = ram_;
  plan.vram_budget = vram_;
  plan.gave_up = gave_up_;
  plan.max_cap = settings_.max_cap;
  plan.image_cache_bytes = settings_.image_cache_bytes;
  plan.row_capacity = s.row_capacity;
  plan.most_waiting_bytes = s.most_waiting_bytes;
  plan.n_ahead = s.n_ahead;
  plan.device_limit_bytes = vram_;
  if (inputs_.shares_host_memory) {
    plan.device_limit_bytes = std::min(vram_, left(ram_, plan.host_bytes));
  }
  // Frames may need more instances than is expected: they get what is left, bands apart.
  plan.instance_budget = settings_.instance_budget;
  if (plan.device_limit_bytes != UINT64_MAX) {
    const uint64_t spare = left(plan.device_limit_bytes, device_need(s));
    const uint64_t most =
        added(s.n_instances * instance_bytes(/*with_gradients=*/true), spare / 16 * 15);
    plan.instance_budget =
        options_.instance_budget > 0 ? std::min(options_.instance_budget, most) : most;
  }
  return plan;
}

}  // namespace

void set_machine(PlanInputs* inputs, const Device& device) {
  const DeviceInfo& info = device.info();
  inputs->shares_host_memory = info.threads > 0 || info.software;
  inputs->stages_in_its_pool = info.threads > 0;
  inputs->n_threads = info.threads;
  inputs->device_bytes = info.memory_bytes;
  inputs->staging_bytes = device.memory().staging_bytes;
  inputs->resident_bytes = resident_host_bytes();
  inputs->available_bytes = available_host_bytes();
}

Result<MemoryPlan> plan_memory(const PlanInputs& inputs) { return Planner(inputs).plan(); }

}  // namespace millrace
