// The closed forms of TRAINING.md 1.4, 1.5 and CONTRACTS.md, and the order of the views.
#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.h"
#include "strategy/mcmc.h"
#include "strategy/mrnf.h"
#include "train/mask_settings.h"

namespace millrace {

namespace {

// The weight of the mean scale: constant, or with the same mean over the run falling to 0
// (TRAINING.md 4.7).
double scale_reg_at(const TrainOptions& options, uint32_t step) {
  const double p = options.scale_reg_power;
  if (p < 0) return options.scale_reg;
  const double left = std::max(0.0, 1.0 - (step + 1.0) / options.iterations);
  return options.scale_reg * (p + 1) * std::pow(left, p);
}

}  // namespace

bool Schedule::refines_after(uint32_t step) const {
  return step > options_.start_refine && step < options_.stop_refine && options_.refine_every > 0 &&
         step % options_.refine_every == 0;
}

bool Schedule::measures_after(uint32_t step) const {
  constexpr uint32_t kRefinementsBetween = 5;
  return is_mrnf() && refines_after(step) &&
         step / options_.refine_every % kRefinementsBetween == 0;
}

uint64_t Schedule::row_bound_after(uint32_t step, uint64_t rows, uint64_t max_rows) const {
  if (!is_mrnf()) return mcmc_row_bound(rows, max_rows);
  return mrnf_row_bound(rows, max_rows, static_cast<float>(options_.grow_fraction),
                        step < options_.grow_until);
}

bool Schedule::reorders_after(uint32_t step) const {
  return options_.morton_interval > 0 && step > 0 && step % options_.morton_interval == 0;
}

uint64_t Schedule::first(uint32_t step) const {
  if (std::ranges::binary_search(plan_.saves, step)) {
    return transaction_id(step, TransactionKind::Snapshot);
  }
  return after_snapshot(step);
}

uint64_t Schedule::after_snapshot(uint32_t step) const {
  const bool evaluates = plan_.n_eval_views > 0 && std::ranges::binary_search(plan_.evals, step);
  return transaction_id(step, evaluates ? TransactionKind::Eval : TransactionKind::Step);
}

uint64_t Schedule::next(uint64_t transaction) const {
  const uint32_t step = step_of(transaction);
  const TransactionKind kind = kind_of(transaction);
  if (kind == TransactionKind::Snapshot) return after_snapshot(step);
  if (kind == TransactionKind::Eval) {
    const uint32_t view = index_of(transaction) + 1;
    return view < plan_.n_eval_views ? transaction_id(step, TransactionKind::Eval, view)
                                     : transaction_id(step, TransactionKind::Step);
  }
  if (kind < TransactionKind::Refine && refines_after(step)) {
    return transaction_id(step, TransactionKind::Refine);
  }
  if (kind < TransactionKind::Reorder && reorders_after(step)) {
    return transaction_id(step, TransactionKind::Reorder);
  }
  return first(step + 1);
}

uint32_t Schedule::sh_degree(uint32_t step) const {
  if (options_.sh_degree_interval == 0) return options_.sh_degree;
  return std::min(options_.sh_degree, step / options_.sh_degree_interval);
}

uint64_t Schedule::max_cap(uint32_t step) const {
  return edits_ ? edits_->max_cap(step, options_.max_cap) : options_.max_cap;
}

StepBlock Schedule::block(uint64_t transaction, uint32_t epoch, uint32_t view) const {
  const uint32_t step = step_of(transaction);
  const double t = step + 1.0;
  const double bias1 = 1.0 - std::pow(0.9, t), bias2 = 1.0 - std::pow(0.999, t);
  const double decay = std::pow(options_.means_lr_final, step / (30000.0 * options_.steps_scaler));
  const double means_rate =
      options_.means_lr * scale_.scene_scale * decay;  // of the normalised world
  StepBlock block = {};
  block.transaction = transaction;
  block.seed = options_.seed;
  block.epoch = epoch;
  block.step = step;
  block.view = view;
  const bool evaluates = kind_of(transaction) == TransactionKind::Eval;
  block.sh_degree = evaluates ? sh_degree_after(step) : sh_degree(step);
  const std::array<float, 3> solid =
      edits_ ? edits_->bg_color(step, options_.bg_color) : options_.bg_color;
  const std::array<float, 3> background = evaluates ? solid : background_at(options_, step, solid);
  std::copy(background.begin(), background.end(), block.background);
  block.rate_means = static_cast<float>(means_rate * scale_.normaliser / bias1);
  block.rate_scales = static_cast<float>(options_.scaling_lr / bias1);
  block.rate_rotations = static_cast<float>(options_.rotation_lr / bias1);
  block.rate_opacities = static_cast<float>(options_.opacity_lr / bias1);
  block.rate_sh0 = static_cast<float>(options_.sh0_lr / bias1);
  block.rate_sh_rest = static_cast<float>(options_.sh0_lr / options_.sh_rest_divisor / bias1);
  block.inv_sqrt_bias2 = static_cast<float>(1.0 / std::sqrt(bias2));
  block.ssim_weight = static_cast<float>(options_.lambda_dssim);
  block.opacity_reg = static_cast<float>(options_.opacity_reg);
  block.scale_reg = static_cast<float>(scale_reg_at(options_, step) / scale_.normaliser);
  block.mrnf.erank_reg = static_cast<float>(options_.erank_reg);
  block.mrnf.dc_reg = static_cast<float>(options_.dc_reg);
  block.mrnf.sh_rest_reg = static_cast<float>(options_.sh_rest_reg);
  const auto crop_box = edits_ ? edits_->crop_box(step) : std::nullopt;
  if (crop_box) block.crop = crop_step(*crop_box, options_.crop_box_lr_scale);
  block.loss = mask_settings(options_);
  block.loss.outside_weight = static_cast<float>(options_.crop_box_loss_weight);
  block.loss.structure_weight = static_cast<float>(options_.thin_structure_weight);
  block.loss.densify_structure_weight = static_cast<float>(options_.densify_structure_weight);
  if (step >= options_.gradient_loss_start) {
    block.loss.edge_weight = static_cast<float>(options_.gradient_loss_weight);
  }
  // Sigma eps w is in world units squared; dividing by the unit makes the step independent of it.
  block.noise_scale = static_cast<float>(means_rate * options_.noise_lr / scale_.normaliser);
  block.min_opacity = static_cast<float>(options_.min_opacity);
  block.max_rows = static_cast<uint32_t>(std::min<uint64_t>(max_cap(step), ~0u));
  block.modes = options_.bg_mode == "random" && !evaluates ? kModeRandomBackground : 0;
  if (options_.mip_filter) block.modes |= kModeMipFilter;
  if (is_mrnf()) set_mrnf(block, bias1);
  if (!evaluates) block.appearance = appearance(step, view);
  return block;
}

// Stages of MRNF are parts of the run, so rates fall over its iterations (TRAINING.md 1.5, 3).
void Schedule::set_mrnf(StepBlock& block, double bias1) const {
  const TrainOptions& o = options_;
  const uint32_t step = block.step;
  const double done = static_cast<double>(step) / o.iterations;
  const double means_rate = o.means_lr * std::pow(o.means_lr_final, done);  // of median sizes
  block.rate_means = static_cast<float>(means_rate / bias1);
  block.rate_scales = static_cast<float>(o.scaling_lr * std::pow(o.scaling_lr_final, done) / bias1);
  if (step > o.grow_until && o.iterations > o.grow_until) {
    const double late = static_cast<double>(step - o.grow_until) / (o.iterations - o.grow_until);
    const auto factor = static_cast<float>(std::pow(o.late_lr_anneal, late));
    for (float* rate : {&block.rate_opacities, &block.rate_sh0, &block.rate_sh_rest}) {
      *rate *= factor;
    }
  }
  block.noise_scale = static_cast<float>(means_rate * o.means_noise_weight);
  MrnfStep& mrnf = block.mrnf;
  mrnf.modes = kMrnfOn;
  if (step < o.grow_until) mrnf.modes |= kMrnfGrows;
  if (measures_after(step)) mrnf.modes |= kMrnfBounds;
  if (step < o.stop_refine && o.means_noise_weight > 0) mrnf.modes |= kMrnfNoise;
  mrnf.growth_threshold = static_cast<float>(o.growth_grad_threshold);
  mrnf.growth_fraction = static_cast<float>(o.grow_fraction);
  const double left = std::max(0.0, 1.0 - (step + 1.0) / o.iterations);
  mrnf.opacity_decay = static_cast<float>(o.opacity_decay * left);
  mrnf.scale_decay = static_cast<float>(o.scale_decay * left);
  mrnf.far_rate_limit = static_cast<float>(o.far_means_lr_limit);
  if (step >= o.grow_until && step >= o.refine_every) {
    mrnf.screen_share_limit = static_cast<float>(o.max_screen_share);
    mrnf.screen_share_penalty = static_cast<float>(o.screen_share_penalty);
  }
}

namespace {

struct AdamRate {
  float rate, inv_sqrt_bias2;
};
// Of the `t`-th update of `n`, from 1: up from 1 % over the warm-up, then down to 1 %.
AdamRate warmed_rate(double rate, double t, double warmup, double n) {
  const double rest = std::max(1.0, n - warmup);
  const double factor =
      t <= warmup ? 0.01 + 0.99 * t / warmup : std::pow(0.01, std::min(1.0, (t - warmup) / rest));
  return {static_cast<float>(rate * factor / (1.0 - std::pow(0.9, t))),
          static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(0.999, t)))};
}

}  // namespace

// TRAINING.md 5.1 to 5.3. The physical camera is not known here.
AppearanceStep Schedule::appearance(uint32_t step, uint32_t view) const {
  AppearanceStep out = {};
  const std::string& correction = options_.exposure_correction;
  if (correction == "off") return out;
  out.frame = view;
  if (correction != "grid") {
    const AdamRate ppisp =
        warmed_rate(options_.ppisp_lr, step + 1.0, options_.ppisp_warmup, options_.iterations);
    out.modes =
        kAppearancePpisp | kAppearanceProject | (correction == "ppisp" ? kAppearanceCrf : 0);
    out.ppisp_rate = ppisp.rate;
    out.ppisp_inv_sqrt_bias2 = ppisp.inv_sqrt_bias2;
    out.ppisp_reg = static_cast<float>(options_.ppisp_reg);
  }
  const uint32_t first = correction == "grid" ? 0 : options_.exposure_grid_start;
  if (correction != "ppisp" && step >= first) {
    out.updates = step - first;
    const AdamRate grid =
        warmed_rate(options_.grid_lr, out.updates + 1.0, options_.grid_warmup,
                    std::max(0.0, static_cast<double>(options_.iterations) - first));
    out.modes |= kAppearanceGrid;
    out.grid_rate = grid.rate;
    out.grid_inv_sqrt_bias2 = grid.inv_sqrt_bias2;
    out.grid_tv = static_cast<float>(options_.grid_tv);
  }
  return out;
}

std::array<float, 3> background_at(const TrainOptions& options, uint32_t step,
                                   const std::array<float, 3>& solid) {
  if (options.bg_mode != "modulation") return solid;
  // TRAINING.md 2.7: three slow waves of different periods that fade out over the third quarter.
  const double done = static_cast<double>(step) / options.iterations;
  const double strength = done < 0.25   ? 1.0
                          : done < 0.5  ? 1.0 - 2.0 * (done - 0.25)
                          : done < 0.75 ? 0.5 - 2.0 * (done - 0.5)
                                        : 0.0;
  if (strength <= 0) return solid;
  constexpr double kPeriods[3] = {37, 41, 43}, kTurn = 2.0 * 3.14159265358979323846;
  std::array<float, 3> color;
  for (size_t c = 0; c < 3; ++c) {
    const double it = step + 1.0;
    const double wave =
        std::sin(kTurn * (std::fmod(it, kPeriods[c]) / kPeriods[c] + static_cast<double>(c) / 3));
    color[c] = static_cast<float>(std::clamp(0.5 * (1 + wave) * strength, 1e-4, 1 - 1e-4));
  }
  return color;
}

uint32_t ViewSampler::view_of(uint32_t step) {
  return permutation(step / n_views_)[step % n_views_];
}

const std::vector<uint32_t>& ViewSampler::permutation(uint32_t pass) {
  const uint32_t slot = pass % 2;
  if (cached_pass_[slot] == pass) return cached_[slot];
  std::vector<uint32_t>& order = cached_[slot];
  order.resize(n_views_);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = n_views_ - 1; i > 0; --i) {  // Fisher and Yates
    const auto words = philox(seed_, pass, RandomPurpose::Sampler, i);
    const auto j = static_cast<uint32_t>(uint64_t{words[0]} * (i + 1) >> 32);
    std::swap(order[i], order[j]);
  }
  cached_pass_[slot] = pass;
  return order;
}

}  // namespace millrace
