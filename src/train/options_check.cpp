// Ranges and combinations of settings, and the step scaler.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "formats/model_file.h"
#include "train/option_values.h"
#include "train/trainer.h"

namespace millrace {
namespace {

constexpr uint32_t kMaxIterations = 1000000000;
constexpr uint64_t kMaxRows = std::numeric_limits<uint32_t>::max();  // ids are 32-bit
constexpr int kMaxThreads = 4096;

bool is_one_of(const std::string& value, const auto& known) {
  return std::find(known.begin(), known.end(), value) != known.end();
}

/// Collects the first complaint, so that the table of ranges reads as a table.
class Ranges {
 public:
  explicit Ranges(const TrainOptions& options) : options_(options) {}

  void require(bool holds, const char* key, const std::string& what, const auto& found) {
    if (holds || !error_.ok()) return;
    error_ = Error{ErrorCode::Usage,
                   fmt::format("{} must be {}, not {}", flag_of_key(key), what, found)};
  }
  void at_least_1(const char* key, uint64_t value) {
    require(value >= 1, key, "at least 1", value);
  }
  void positive(const char* key, double value) {
    require(std::isfinite(value) && value > 0, key, "above 0", value);
  }
  void not_negative(const char* key, double value) {
    require(std::isfinite(value) && value >= 0, key, "0 or more", value);
  }
  void share(const char* key, double value) {
    require(value >= 0 && value <= 1, key, "from 0 to 1", value);
  }

  Result<void> check();

 private:
  void check_data();
  void check_run();
  void check_model();
  void check_rates();
  void check_tests();

  const TrainOptions& options_;
  Result<void> error_;
};

void Ranges::check_data() {
  const TrainOptions& o = options_;
  const uint32_t r = o.resize_factor;
  require(r == 0 || r == 1 || r == 2 || r == 4 || r == 8, "resize_factor", "auto, 1, 2, 4 or 8", r);
  require(o.test_every == 0 || !o.test_images.empty() || o.test_fold < o.test_every, "test_fold",
          fmt::format("below --test-every ({})", o.test_every), o.test_fold);
  for (const float channel : o.bg_color) {
    require(channel >= 0 && channel <= 1, "bg_color", "three numbers from 0 to 1", channel);
  }
  require(is_one_of(o.bg_mode, kBackgroundModes), "bg_mode", "solid, random, modulation or image",
          "'" + o.bg_mode + "'");
  require((o.bg_mode == "image") == !o.bg_image.empty(), "bg_image",
          "a file with --bg-mode image, and none otherwise", "'" + o.bg_image + "'");
}

void Ranges::check_run() {
  const TrainOptions& o = options_;
  require(o.iterations >= 1 && o.iterations <= kMaxIterations, "iterations",
          fmt::format("from 1 to {}", kMaxIterations), o.iterations);
  positive("steps_scaler", o.steps_scaler);
  require(is_one_of(o.strategy, kStrategies), "strategy", "mcmc, the one strategy there is so far",
          "'" + o.strategy + "'");
  require(!o.device.empty(), "device", "auto or an id that `millrace devices` lists", "empty");
  require(o.threads >= 0 && o.threads <= kMaxThreads, "threads",
          fmt::format("from 0 to {}", kMaxThreads), o.threads);
}

void Ranges::check_model() {
  const TrainOptions& o = options_;
  require(o.sh_degree <= 3, "sh_degree", "from 0 to 3", o.sh_degree);
  at_least_1("sh_degree_interval", o.sh_degree_interval);
  require(o.max_cap >= 1 && o.max_cap <= kMaxRows, "max_cap", fmt::format("from 1 to {}", kMaxRows),
          o.max_cap);
  require(o.init_num_pts >= 1 && o.init_num_pts <= kMaxRows, "init_num_pts",
          fmt::format("from 1 to {}", kMaxRows), o.init_num_pts);
  require(o.init_opacity > 0 && o.init_opacity < 1, "init_opacity", "between 0 and 1",
          o.init_opacity);
  positive("init_scaling", o.init_scaling);
}

void Ranges::check_rates() {
  const TrainOptions& o = options_;
  share("lambda_dssim", o.lambda_dssim);
  not_negative("means_lr", o.means_lr);
  positive("means_lr_final", o.means_lr_final);
  not_negative("opacity_lr", o.opacity_lr);
  not_negative("scaling_lr", o.scaling_lr);
  not_negative("rotation_lr", o.rotation_lr);
  not_negative("sh0_lr", o.sh0_lr);
  positive("sh_rest_divisor", o.sh_rest_divisor);
  not_negative("opacity_reg", o.opacity_reg);
  not_negative("scale_reg", o.scale_reg);
  not_negative("noise_lr", o.noise_lr);
  require(o.min_opacity >= 0 && o.min_opacity < 1, "min_opacity", "from 0 to below 1",
          o.min_opacity);
  at_least_1("refine_every", o.refine_every);
}

void Ranges::check_tests() {
  const TrainOptions& o = options_;
  std::set<uint32_t> steps;
  for (const ForcedCapacity& forced : o.test_capacity) {
    at_least_1("test_capacity", forced.capacity);
    require(steps.insert(forced.step).second, "test_capacity", "given once for a step",
            fmt::format("twice for step {}", forced.step));
  }
  share("test_capacity_random", o.test_capacity_random);
  not_negative("test_decode_delay_ms", o.test_decode_delay_ms);
}

Result<void> Ranges::check() {
  check_data();
  check_run();
  check_model();
  check_rates();
  check_tests();
  return error_;
}

/// `steps` times `scaler`, rounded; at least 1 unless it was 0.
Result<uint32_t> scaled(uint32_t steps, double scaler) {
  const double value = std::round(steps * scaler);
  if (value > kMaxIterations) {
    return Error{ErrorCode::Usage,
                 fmt::format("--steps-scaler {} makes {} steps of {}; the most is {}", scaler,
                             value, steps, kMaxIterations)};
  }
  return steps == 0 ? 0 : std::max<uint32_t>(1, static_cast<uint32_t>(value));
}

}  // namespace

Result<TrainOptions> checked_options(const TrainOptions& options) {
  MILLRACE_TRY(Ranges(options).check());
  MILLRACE_TRY(formats_of_names(options.exports));
  TrainOptions o = options;
  if (o.steps_scaler == 1) return o;
  for (uint32_t* steps : {&o.iterations, &o.start_refine, &o.stop_refine, &o.refine_every,
                          &o.sh_degree_interval, &o.morton_interval}) {
    MILLRACE_ASSIGN(*steps, scaled(*steps, o.steps_scaler));
  }
  for (std::vector<uint32_t>* list : {&o.eval_steps, &o.save_steps}) {
    for (uint32_t& step : *list) {
      MILLRACE_ASSIGN(step, scaled(step, o.steps_scaler));
    }
  }
  return o;
}

}  // namespace millrace
