// The strategies' defaults (TRAINING.md 1.5, 3.1).
#include "train/strategy_options.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

void set_mcmc(TrainOptions& o) {
  const TrainOptions d;
  o.max_cap = d.max_cap;
  o.lambda_dssim = d.lambda_dssim;
  o.means_lr = d.means_lr;
  o.means_lr_final = d.means_lr_final;
  o.opacity_lr = d.opacity_lr;
  o.scaling_lr = d.scaling_lr;
  o.scaling_lr_final = d.scaling_lr_final;
  o.rotation_lr = d.rotation_lr;
  o.sh0_lr = d.sh0_lr;
  o.opacity_reg = d.opacity_reg;
  o.scale_reg = d.scale_reg;
  o.scale_reg_power = d.scale_reg_power;
  o.erank_reg = d.erank_reg;
  o.dc_reg = d.dc_reg;
  o.sh_rest_reg = d.sh_rest_reg;
  o.thin_structure_weight = d.thin_structure_weight;
  o.densify_structure_weight = d.densify_structure_weight;
  o.gradient_loss_weight = d.gradient_loss_weight;
  o.min_opacity = d.min_opacity;
  o.refine_every = d.refine_every;
  o.start_refine = d.start_refine;
  o.stop_refine = d.stop_refine;
}

void set_mrnf(TrainOptions& o) {
  o.max_cap = 5000000;
  o.lambda_dssim = 0.22;
  o.means_lr = 2.17871e-5;  // in median sizes of the scene
  o.means_lr_final = 2e-7 / 2.17871e-5;
  o.opacity_lr = 0.012;
  o.scaling_lr = 0.00828016;
  o.scaling_lr_final = 0.005 / 0.00828016;
  o.rotation_lr = 0.0015;
  o.sh0_lr = -1;
  o.opacity_reg = 0;
  o.scale_reg = 0.01;
  o.scale_reg_power = 0.4;
  o.erank_reg = 0.001;
  o.dc_reg = 0.001;
  o.sh_rest_reg = 0.001;
  o.thin_structure_weight = 0.5;
  o.densify_structure_weight = 1;
  o.gradient_loss_weight = 1.8;
  o.min_opacity = 1.0 / 255;
  o.refine_every = 163;
  o.start_refine = 0;
  o.stop_refine = kAutoSteps;
}

uint32_t part_of(uint32_t steps, double part) {
  return static_cast<uint32_t>(std::llround(part * steps));
}

}  // namespace

std::string canonical_strategy(const std::string& name) {
  return name == "mnrf" || name == "lfs" ? "mrnf" : name;
}

void use_strategy(TrainOptions& options, const std::string& name) {
  const std::string strategy = canonical_strategy(name);
  if (strategy == options.strategy) return;
  options.strategy = strategy;
  if (strategy == "mcmc") set_mcmc(options);
  if (strategy == "mrnf") set_mrnf(options);
}

TrainOptions resolved_options(const TrainOptions& options) {
  TrainOptions o = options;
  o.strategy = canonical_strategy(o.strategy);
  if (o.stop_refine == kAutoSteps) o.stop_refine = part_of(o.iterations, 0.95);
  if (o.strategy != "mrnf") return o;
  if (o.grow_until == kAutoSteps) o.grow_until = part_of(o.iterations, 0.5);
  const double millions = std::clamp(static_cast<double>(o.max_cap) / 1e6, 1.0, 5.0);
  if (o.sh0_lr < 0) {
    o.sh0_lr = 0.005 * std::sqrt(1 / std::max(static_cast<double>(o.max_cap) / 1e6, 1.0));
  }
  if (o.grow_fraction == 0) {
    o.grow_fraction = 0.0758 + (0.12 - 0.0758) * std::log(millions) / std::log(5.0);
  }
  return o;
}

}  // namespace millrace
