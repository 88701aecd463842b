// Oracle: a naive renderer, loss and differentiator in double precision, written for reading. It
// has no tiles, no culling by area and no gradients of its own; what it says, the kernels must
// match. Source: TRAINING.md 1.1, 2.1-2.4, 4.1 and 4.7.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/gaussian_cloud.h"
#include "data/dataset.h"
#include "kernels/splat_params.h"

namespace millrace::test {

/// A GaussianCloud in double precision, so that steps far below a float's spacing can be taken.
struct OracleCloud {
  int sh_degree = 3;
  std::vector<double> means, log_scales, rotations, opacities, sh0, sh_rest;
  OracleCloud() = default;
  OracleCloud(const GaussianCloud& cloud);  // NOLINT: implicit by design
  size_t count() const { return opacities.size(); }
};

enum class Group { Means, LogScales, Rotations, Opacities, Sh0, ShRest };
inline constexpr std::array kGroups = {Group::Means,     Group::LogScales, Group::Rotations,
                                       Group::Opacities, Group::Sh0,       Group::ShRest};
const char* to_string(Group group);
std::vector<double>& group_of(OracleCloud& cloud, Group group);
std::vector<float>& group_of(GaussianCloud& cloud, Group group);

struct OracleFrame {
  int width = 0, height = 0;
  std::vector<double> image;  // [3,H,W]
  std::vector<double> alpha;  // [H,W], 1 - T
  std::vector<double> depth;  // [H,W], sum of weight x depth, not normalised
  // [H,W], the smallest relative distance of an alpha from 1/255 or of T from 1e-4. Where it is
  // near the rounding of float32, kernels may decide otherwise.
  std::vector<double> margin;
};

/// The SH basis of unit direction (x, y, z), constant term first. Coefficient k of the rest is [k +
/// 1].
std::array<double, 16> oracle_sh_basis(double x, double y, double z);

/// The mip filter: less dilation, and each opacity times sqrt(det / dilated det), or times what
/// `compensation` [N] says.
struct OracleMip {
  bool on = false;
  const std::vector<double>* compensation = nullptr;
};
/// What the mip filter multiplies each opacity by, [N]; 1 for rows that are not drawn.
std::vector<double> oracle_compensation(const OracleCloud& cloud, const Camera& camera,
                                        double near_plane);

/// Renders `cloud`. Every Gaussian meets every pixel.
OracleFrame oracle_render(const OracleCloud& cloud, const Camera& camera, int active_sh_degree,
                          const std::array<double, 3>& background, double near_plane,
                          const OracleMip& mip = {});

/// (1 - w) L1 + w (1 - SSIM) against `target` [3,H,W], values / 255. Pixels closer than 5 to a
/// border do not count, unless a side is 10 or less: then all do.
double oracle_loss(const OracleFrame& frame, const std::vector<uint8_t>& target,
                   double ssim_weight);

/// What a training step minimises, beside its view.
struct OracleStep {
  int active_sh_degree = 3;
  std::array<double, 3> background = {0, 0, 0};
  double near_plane = 0.01;
  double ssim_weight = 0.2;
  double opacity_reg = 0;  // weight of mean(sigmoid(opacity)) over all rows
  double scale_reg = 0;    // weight of mean(exp(log scale)) over all rows and axes
  double erank_reg = 0;    // of mean max(0, -ln(effective rank - 1 + 1e-5))
  double dc_reg = 0;       // of the sum over rows of the mean square by which sh0 is outside
  double sh_rest_reg = 0;  // of the mean square of all stored coefficients of the rest
  bool mip_filter = false;
  CropStep crop = {};  // of device_train() alone
};
double oracle_regularisers(const OracleCloud& cloud, const OracleStep& step);
double oracle_step_loss(const OracleCloud& cloud, const Camera& camera,
                        const std::vector<uint8_t>& target, const OracleStep& step);

/// Some numbers that depend on the cloud, computed together because rendering is what costs.
using Functionals = std::function<std::vector<double>(const OracleCloud&)>;

/// The derivative of one functional by one entry, measured with two step sizes.
///
/// A difference stands for the derivative only where the functional is smooth over the whole step.
/// Rendering is not smooth where alpha crosses 1/255 or 0.999, where T crosses 1e-4 behind a
/// Gaussian, where two depths swap, where a Gaussian is culled, where a colour meets 0 or 4, where
/// x/z or y/z meets the guard band; L1 is not where a pixel equals its target. A jump of size j
/// inside the step gives j / step, so it doubles with the half step; a kink gives one-sided
/// differences whose distance does not shrink with the step. Both are looked for.
struct Difference {
  double full = 0, half = 0;            // central, with the step and with half of it
  double bend_full = 0, bend_half = 0;  // |forward - backward|
  double value() const { return half; }
  bool smooth(double tolerance) const;
};

/// Differences of every functional by entry `entry` of `group`, which is restored before return.
std::vector<Difference> central_differences(OracleCloud& cloud, Group group, size_t entry,
                                            double step, const Functionals& functionals);

}  // namespace millrace::test
