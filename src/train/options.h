// TrainOptions: every setting of a training run, and the one list from which flags and config keys
// are made.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

/// What --strategy and --bg-mode take.
inline constexpr std::array kStrategies = {"mcmc"};
inline constexpr std::array kBackgroundModes = {"solid", "random", "modulation", "image"};

/// Capacity forced on the first attempt of a step that finds the gate open (tests).
struct ForcedCapacity {
  uint64_t capacity = 0;
  uint32_t step = 0;
};

struct TrainOptions {
  // What to train on.
  std::string dataset;
  std::string output;  // empty: runs/<dataset>-<time>
  bool overwrite = false;
  std::string images;
  uint32_t resize_factor = 0;  // 0 auto, 1, 2, 4, 8
  uint32_t max_width = 3840;
  uint32_t test_every = 8;
  uint32_t test_fold = 0;
  std::vector<std::string> test_images;
  std::array<float, 3> bg_color = {0, 0, 0};
  std::string bg_mode = "solid";  // solid, random, modulation, image
  std::string bg_image;           // for bg_mode image

  // The run.
  uint32_t iterations = 30000;
  double steps_scaler = 1;  // multiplies all step counts
  std::string strategy = "mcmc";
  uint64_t seed = 42;
  std::string device = "auto";
  int threads = 0;  // cpu threads; 0 = all
  uint64_t image_cache_bytes = 4ull << 30;
  uint64_t instance_budget = 0;  // bytes; 0 = what the device has
  uint64_t ram_budget = 0;       // bytes of the whole process; 0 = what the machine has
  uint64_t vram_budget = 0;      // bytes of the device; 0 = what it has
  std::vector<uint32_t> eval_steps = {7000, 30000};
  std::vector<uint32_t> save_steps = {7000, 30000};
  std::vector<std::string> exports;  // formats beside PLY, at the end
  std::string commands;              // file of edits; empty: none
  std::string trace;                 // file; empty: none

  // The model.
  uint32_t sh_degree = 3;
  uint32_t sh_degree_interval = 1000;
  uint64_t max_cap = 1000000;
  uint64_t init_num_pts = 100000;
  bool random = false;    // ignore the capture's points
  bool init_fill = true;  // add points where photographs have none
  double init_opacity = 0.5;
  double init_scaling = 0.5;
  uint32_t morton_interval = 5000;

  // Loss and optimiser. Rates are per step; means_lr is in units of the scene scale.
  double lambda_dssim = 0.2;
  double means_lr = 1.6e-4;
  double means_lr_final = 0.01;  // factor reached at step 30,000 (times the scaler)
  double opacity_lr = 0.05;
  double scaling_lr = 5e-3;
  double rotation_lr = 1e-3;
  double sh0_lr = 2.5e-3;
  double sh_rest_divisor = 20;
  double opacity_reg = 0.01;
  double scale_reg = 0.04;

  // MCMC.
  double noise_lr = 5e5;
  double min_opacity = 0.005;
  uint32_t refine_every = 100;
  uint32_t start_refine = 500;
  uint32_t stop_refine = 25000;

  // Tests.
  std::vector<ForcedCapacity> test_capacity;
  double test_capacity_random = 0;
  double test_decode_delay_ms = 0;
};

/// Calls visit(key, member, help, aliases) for each setting that is a flag and a config key. `key`
/// has underscores; the flag is "--" + key with dashes (underscores are accepted). `aliases`:
/// space-separated further flags, "-r" style included.
template <class Options, class Visit>
void visit_options(Options& o, Visit&& visit) {
  visit("output", o.output, "output folder (default runs/<dataset>-<time>)",
        "-o -m --output-path --result-dir --model-path");
  visit("overwrite", o.overwrite, "replace an earlier run in the output folder", "");
  visit("images", o.images, "image folder, by name or path", "");
  visit("resize_factor", o.resize_factor, "train at 1/1, 1/2, 1/4 or 1/8 size; 0 = auto",
        "-r --resolution --data-factor --downscale-factor");
  visit("max_width", o.max_width, "longest image side in pixels; 0 = no limit", "--max-resolution");
  visit("test_every", o.test_every, "hold out every Nth image by sorted name; 0 = none",
        "--eval-split-every");
  visit("test_fold", o.test_fold, "hold out index % test-every == FOLD", "");
  visit("test_images", o.test_images, "hold out exactly these images (comma-separated names)", "");
  visit("bg_color", o.bg_color, "background, '#rrggbb' or r,g,b from 0 to 1", "--background-color");
  visit("bg_mode", o.bg_mode, "background while training: solid, random, modulation or image", "");
  visit("bg_image", o.bg_image, "background image, resized to each frame (--bg-mode image)", "");
  visit("iterations", o.iterations, "training steps",
        "-i --iter --total-train-iters --num-iters --max-steps --max-num-iterations");
  visit("steps_scaler", o.steps_scaler, "multiplies all step counts", "");
  visit("strategy", o.strategy, "densification strategy: mcmc", "");
  visit("seed", o.seed, "seed of all random numbers", "");
  visit("device", o.device, "device id; see `millrace devices`", "");
  visit("threads", o.threads, "threads of the cpu device; 0 = all", "");
  visit("image_cache_bytes", o.image_cache_bytes, "memory for decoded photographs", "");
  visit("instance_budget", o.instance_budget,
        "device memory for tile instances; frames that need more are drawn in bands; 0 = no limit",
        "");
  visit("ram_budget", o.ram_budget,
        "most memory of the process; the run gives up cache, room and Gaussians to keep it; 0 = "
        "what the machine has",
        "");
  visit("vram_budget", o.vram_budget, "the same of the device's memory; 0 = what it has", "");
  visit("eval_steps", o.eval_steps, "evaluate after these steps (always at the end)",
        "--test-iterations");
  visit("save_steps", o.save_steps, "write the PLY after these steps (always at the end)",
        "--save-iterations");
  visit("export", o.exports, "write the final model in these formats too (docs/formats.md)", "");
  visit("commands", o.commands, "JSON lines of changes by step (docs/cli.md)", "");
  visit("trace", o.trace, "write a trace of the run that Perfetto opens (docs/waits.md)", "");
  visit("sh_degree", o.sh_degree, "spherical harmonics degree, 0 to 3", "");
  visit("sh_degree_interval", o.sh_degree_interval, "steps between degree rises", "");
  visit("max_cap", o.max_cap, "most Gaussians", "--max-splats --cap-max");
  visit("init_num_pts", o.init_num_pts, "random points where the capture has none", "");
  visit("random", o.random, "start from random points, ignoring the capture's", "");
  visit("init_fill", o.init_fill,
        "add gray points where most of what the photographs show has no point", "");
  visit("init_opacity", o.init_opacity, "opacity of new Gaussians", "");
  visit("init_scaling", o.init_scaling, "initial scale in neighbour distances", "");
  visit("morton_interval", o.morton_interval, "steps between reorderings; 0 = never", "");
  visit("lambda_dssim", o.lambda_dssim, "weight of 1 - SSIM against L1",
        "--ssim-weight --ssim-lambda");
  visit("means_lr", o.means_lr, "rate of the means, in scene scales", "");
  visit("means_lr_final", o.means_lr_final, "factor of means_lr at step 30,000", "");
  visit("opacity_lr", o.opacity_lr, "rate of the opacities", "");
  visit("scaling_lr", o.scaling_lr, "rate of the scales", "");
  visit("rotation_lr", o.rotation_lr, "rate of the rotations", "");
  visit("sh0_lr", o.sh0_lr, "rate of the base colour", "--feature-lr");
  visit("sh_rest_divisor", o.sh_rest_divisor, "sh0_lr over the rate of the higher harmonics", "");
  visit("opacity_reg", o.opacity_reg, "weight of the mean opacity in the loss", "");
  visit("scale_reg", o.scale_reg, "weight of the mean scale in the loss", "");
  visit("noise_lr", o.noise_lr, "MCMC noise strength", "");
  visit("min_opacity", o.min_opacity, "MCMC: Gaussians at or below are dead", "");
  visit("refine_every", o.refine_every, "steps between refinements", "");
  visit("start_refine", o.start_refine, "first refinement after this step", "--refine-start");
  visit("stop_refine", o.stop_refine, "no refinement from this step on", "--refine-stop");
  visit("test_capacity", o.test_capacity, "N@S: instance capacity N at step S (testing)", "");
  visit("test_capacity_random", o.test_capacity_random,
        "probability of a random capacity per step (testing)", "");
  visit("test_decode_delay_ms", o.test_decode_delay_ms, "slows each decode (testing)", "");
}

}  // namespace millrace
