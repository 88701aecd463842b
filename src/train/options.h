// TrainOptions: every setting of a training run, and the one list from which flags and config keys
// are made.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

/// What --strategy, --exposure-correction and --bg-mode take.
inline constexpr std::array kStrategies = {"mcmc", "mrnf"};
/// A number of steps that follows from the number of iterations.
inline constexpr uint32_t kAutoSteps = ~0u;
inline constexpr std::array kExposureCorrections = {"off", "ppisp", "grid", "combined"};
/// In the order of MaskMode.
inline constexpr std::array kMaskModes = {"none", "ignore", "segment", "segment-and-ignore",
                                          "alpha-consistent"};
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
  bool mip_filter = false;  // for renders of other sizes than the photographs'

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
  double scale_reg_power = -1;  // below 0: scale_reg stays as it is
  double erank_reg = 0;
  double dc_reg = 0;
  double sh_rest_reg = 0;
  double thin_structure_weight = 0;     // 0: thin structures count as all else
  double densify_structure_weight = 0;  // the same where Gaussians are added
  double gradient_loss_weight = 0;      // of the edge loss; 0: none
  uint32_t gradient_loss_start = 2000;

  // Masks: which pixels of the photographs count.
  std::string mask_mode = "none";
  std::string masks;  // folder; empty: find it
  bool invert_masks = false;
  double mask_threshold = 0.5;
  double mask_penalty = 1;

  // The crop box: what is outside is learned at a lower weight.
  std::string crop_box;  // a file, or six numbers; empty: none
  double crop_box_loss_weight = 0.1;
  double crop_box_lr_scale = 0.1;
  double scaling_lr_final = 1;  // factor reached at the end

  // MRNF. What depends on the strategy above and below is set by use_strategy().
  double growth_grad_threshold = 0.00309693;
  double grow_fraction = 0;  // 0: by max_cap
  double opacity_decay = 0.004;
  double scale_decay = 0.002;
  double means_noise_weight = 50;
  double max_screen_share = 0.586511;  // outside 0 to 1: no limit
  double screen_share_penalty = 0.847085;
  double far_means_lr_limit = 300;  // 1: all rows have one rate
  double late_lr_anneal = 0.3;      // factor of opacity and colour rates from grow_until to the end
  uint32_t grow_until = kAutoSteps;

  // Exposure correction.
  std::string exposure_correction = "off";
  bool exif_exposure = true;  // begin with what the files say
  double ppisp_lr = 2e-3;
  double ppisp_reg = 1;
  uint32_t ppisp_warmup = 500;
  uint32_t exposure_grid_start = 1000;  // of combined
  double grid_lr = 2e-3;
  double grid_tv = 10;
  uint32_t grid_warmup = 1000;

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
  visit("strategy", o.strategy,
        "densification strategy: mcmc or mrnf; each has defaults of its own", "");
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
  visit("mip_filter", o.mip_filter,
        "less blur and opacities that make up for it, for renders of other sizes; marks the PLY",
        "--antialiasing --antialiased");
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
  visit("scale_reg_power", o.scale_reg_power,
        "scale_reg falls as (p + 1) (1 - done)^p to 0 at the end; below 0: it stays", "");
  visit("erank_reg", o.erank_reg, "weight against needles: -ln(effective rank - 1), the mean", "");
  visit("dc_reg", o.dc_reg, "weight of the squares of base colours outside 0 to 1, their sum", "");
  visit("sh_rest_reg", o.sh_rest_reg, "weight of the mean square of the higher harmonics", "");
  visit("thin_structure_weight", o.thin_structure_weight,
        "how much more thin structures of a photograph count in the loss, 0 to 4; 0 = off", "");
  visit("densify_structure_weight", o.densify_structure_weight,
        "how much more errors at thin structures count where Gaussians are added, 0 to 4", "");
  visit("gradient_loss_weight", o.gradient_loss_weight,
        "weight of the difference of edges in the loss, 0 to 8; 0 = off", "");
  visit("gradient_loss_start", o.gradient_loss_start, "the edges' difference counts from here on",
        "");
  visit("mask_mode", o.mask_mode,
        "what masks do: none, ignore, segment, segment-and-ignore or alpha-consistent", "");
  visit("masks", o.masks, "mask folder, by name or path (default: masks, mask, ...)",
        "--masks-path");
  visit("invert_masks", o.invert_masks, "white is left out instead of black", "");
  visit("mask_threshold", o.mask_threshold, "mask values from here on count whole, 0 to 1", "");
  visit("mask_penalty", o.mask_penalty, "weight of opacity where the mask says background", "");
  visit("crop_box", o.crop_box, "region of interest: a JSON file, or min,max as x,y,z,x,y,z", "");
  visit("crop_box_loss_weight", o.crop_box_loss_weight, "weight of pixels that miss the box", "");
  visit("crop_box_lr_scale", o.crop_box_lr_scale,
        "factor of the steps of Gaussians outside the box; 0 = they stay as they are", "");
  visit("scaling_lr_final", o.scaling_lr_final, "factor of scaling_lr at the end", "");
  visit("growth_grad_threshold", o.growth_grad_threshold,
        "MRNF: Gaussians whose error is larger may be split", "");
  visit("grow_fraction", o.grow_fraction,
        "MRNF: of them, how many are split at a refinement; 0 = by --max-cap", "");
  visit("opacity_decay", o.opacity_decay, "MRNF: opacity lost at a refinement, 0 at the end", "");
  visit("scale_decay", o.scale_decay, "MRNF: part of the scale lost at a refinement", "");
  visit("means_noise_weight", o.means_noise_weight, "MRNF noise strength", "");
  visit("max_screen_share", o.max_screen_share,
        "MRNF: Gaussians that cover more of a view shrink once growth is over; 0 = off", "");
  visit("screen_share_penalty", o.screen_share_penalty, "MRNF: how fast they do", "");
  visit("far_means_lr_limit", o.far_means_lr_limit,
        "MRNF: most that large Gaussians far from the cameras move faster; 1 = off", "");
  visit("late_lr_anneal", o.late_lr_anneal,
        "MRNF: factor of opacity and colour rates at the end, falling from grow_until on", "");
  visit("grow_until", o.grow_until,
        "MRNF: no growth from this step on; auto = half of the iterations", "");
  visit("exposure_correction", o.exposure_correction,
        "learn what cameras and exposures did to each photograph: off, ppisp, grid or combined",
        "");
  visit("exif_exposure", o.exif_exposure, "begin with the exposures that the files' EXIF tells",
        "");
  visit("ppisp_lr", o.ppisp_lr, "rate of PPISP's parameters, falling to 1 % at the end", "");
  visit("ppisp_reg", o.ppisp_reg, "weight of PPISP's penalties on vignetting and response", "");
  visit("ppisp_warmup", o.ppisp_warmup, "steps over which that rate rises from 1 %", "");
  visit("exposure_grid_start", o.exposure_grid_start, "first step of the grids of combined", "");
  visit("grid_lr", o.grid_lr, "rate of the grids, falling to 1 % at the end", "");
  visit("grid_tv", o.grid_tv, "weight of the grids' total variation", "");
  visit("grid_warmup", o.grid_warmup, "steps over which that rate rises from 1 %", "");
  visit("noise_lr", o.noise_lr, "MCMC noise strength", "");
  visit("min_opacity", o.min_opacity, "MCMC: Gaussians at or below are dead", "");
  visit("refine_every", o.refine_every, "steps between refinements", "");
  visit("start_refine", o.start_refine, "first refinement after this step", "--refine-start");
  visit("stop_refine", o.stop_refine,
        "no refinement from this step on; auto = 95 % of the iterations", "--refine-stop");
  visit("test_capacity", o.test_capacity, "N@S: instance capacity N at step S (testing)", "");
  visit("test_capacity_random", o.test_capacity_random,
        "probability of a random capacity per step (testing)", "");
  visit("test_decode_delay_ms", o.test_decode_delay_ms, "slows each decode (testing)", "");
}

}  // namespace millrace
