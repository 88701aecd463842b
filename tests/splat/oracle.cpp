// The oracle: projection, blending, loss and differences, written out plainly.
#include "splat/oracle.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/splat_params.h"

namespace millrace::test {
namespace {

// Written as doubles: the kernels' float constants differ from them by less than any tolerance.
constexpr double kMinAlpha = 1.0 / 255.0;
constexpr double kMaxAlpha = 0.999;
constexpr double kMinTransmittance = 1e-4;
constexpr double kBlur = 0.3, kMipBlur = 0.1;
constexpr double kMinDeterminant = 1e-6;
constexpr double kMinNorm2 = 1e-8;
constexpr double kMargin = 0.15;

using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<Vector3, 3>;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Vector3 times(const Matrix3& m, const Vector3& v) {
  return {dot(m[0], v), dot(m[1], v), dot(m[2], v)};
}

// One Gaussian as the pixels see it.
struct Splat {
  double x, y, depth;
  double a, b, c;  // conic
  double opacity, compensation;
  Vector3 color;
};

Matrix3 rotation_of(const double* q) {
  const double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  const double w = q[0] / norm, x = q[1] / norm, y = q[2] / norm, z = q[3] / norm;
  return {{{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
           {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
           {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}}};
}

// R diag(exp(2 s)) R^T, the raw scale limited to 20.
Matrix3 covariance_of(const OracleCloud& cloud, size_t row) {
  const Matrix3 r = rotation_of(&cloud.rotations[4 * row]);
  Matrix3 sigma{};
  for (int k = 0; k < 3; ++k) {
    const double scale = std::exp(std::min(cloud.log_scales[3 * row + k], double{kMaxRawScale}));
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) sigma[i][j] += scale * scale * r[i][k] * r[j][k];
    }
  }
  return sigma;
}

Vector3 color_of(const OracleCloud& cloud, size_t row, const Vector3& direction, int degree) {
  const double norm2 = dot(direction, direction);
  const double inverse = norm2 < 1e-12 ? 0 : 1 / std::sqrt(norm2);
  const auto basis = norm2 < 1e-12 ? oracle_sh_basis(0, 0, 1)
                                   : oracle_sh_basis(direction[0] * inverse, direction[1] * inverse,
                                                     direction[2] * inverse);
  const int stored = sh_rest_count(cloud.sh_degree);
  const int active = sh_rest_count(std::min(degree, cloud.sh_degree));
  Vector3 color;
  for (int channel = 0; channel < 3; ++channel) {
    double value = 0.5 + basis[0] * cloud.sh0[3 * row + channel];
    for (int k = 0; k < active; ++k) {
      value += basis[k + 1] * cloud.sh_rest[(row * stored + k) * 3 + channel];
    }
    color[channel] = std::clamp(value, 0.0, double{kMaxBlendColor});
  }
  return color;
}

bool is_finite(const OracleCloud& cloud, size_t row) {
  double all = cloud.opacities[row];
  for (int i = 0; i < 3; ++i) {
    all += cloud.means[3 * row + i] + cloud.log_scales[3 * row + i] + cloud.sh0[3 * row + i];
  }
  for (int i = 0; i < 4; ++i) all += cloud.rotations[4 * row + i];
  return std::isfinite(all);
}

bool project(const OracleCloud& cloud, size_t row, const Camera& camera, int degree,
             double near_plane, const OracleMip& mip, Splat& splat) {
  if (!is_finite(cloud, row)) return false;
  const auto& view = camera.world_to_camera;
  const Matrix3 w = {
      {{view[0], view[1], view[2]}, {view[4], view[5], view[6]}, {view[8], view[9], view[10]}}};
  const Vector3 translation = {view[3], view[7], view[11]};
  const Vector3 mean = {cloud.means[3 * row], cloud.means[3 * row + 1], cloud.means[3 * row + 2]};
  Vector3 p = times(w, mean);
  for (int i = 0; i < 3; ++i) p[i] += translation[i];
  const double z = p[2];
  if (!(z >= near_plane)) return false;

  splat.opacity = sigmoid(cloud.opacities[row]);
  if (!(splat.opacity >= kMinAlpha)) return false;
  const double* q = &cloud.rotations[4 * row];
  if (!(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] >= kMinNorm2)) return false;

  // The guard band limits where the projection is linearised, not where the centre lands.
  const double x = p[0] / z, y = p[1] / z;
  const double tx = std::clamp(x, (-kMargin * camera.width - camera.cx) / camera.fx,
                               ((1 + kMargin) * camera.width - camera.cx) / camera.fx);
  const double ty = std::clamp(y, (-kMargin * camera.height - camera.cy) / camera.fy,
                               ((1 + kMargin) * camera.height - camera.cy) / camera.fy);
  Vector3 r1, r2;
  for (int i = 0; i < 3; ++i) {
    r1[i] = camera.fx / z * (w[0][i] - tx * w[2][i]);
    r2[i] = camera.fy / z * (w[1][i] - ty * w[2][i]);
  }
  const Matrix3 sigma = covariance_of(cloud, row);
  const double a0 = dot(r1, times(sigma, r1)), b = dot(r1, times(sigma, r2));
  const double c0 = dot(r2, times(sigma, r2)), dilation = mip.on ? kMipBlur : kBlur;
  const double a = a0 + dilation, c = c0 + dilation;
  const double determinant = a * c - b * b;
  if (!(determinant >= kMinDeterminant)) return false;
  splat.compensation = mip.on ? std::sqrt(std::max(a0 * c0 - b * b, 0.0) / determinant) : 1;
  splat.opacity *= mip.compensation ? (*mip.compensation)[row] : splat.compensation;
  if (!(splat.opacity >= kMinAlpha)) return false;
  splat.a = c / determinant;
  splat.b = -b / determinant;
  splat.c = a / determinant;
  splat.x = x * camera.fx + camera.cx;
  splat.y = y * camera.fy + camera.cy;
  splat.depth = z;

  // -R^T t.
  Vector3 direction;
  for (int i = 0; i < 3; ++i) {
    direction[i] =
        mean[i] + w[0][i] * translation[0] + w[1][i] * translation[1] + w[2][i] * translation[2];
  }
  splat.color = color_of(cloud, row, direction, degree);
  const double all = splat.x + splat.y + z + splat.a + splat.b + splat.c + splat.color[0] +
                     splat.color[1] + splat.color[2];
  return std::isfinite(all);
}

// Zero-padded 11-tap filter along rows and columns of one plane.
std::vector<double> blur(const std::vector<double>& plane, int width, int height) {
  std::array<double, 11> taps;
  for (int i = 0; i < 11; ++i) taps[i] = std::exp(-(i - 5) * (i - 5) / (2 * 1.5 * 1.5));
  const double total = std::accumulate(taps.begin(), taps.end(), 0.0);
  for (double& tap : taps) tap /= total;
  std::vector<double> rows(plane.size()), out(plane.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int i = std::max(0, 5 - x); i < std::min(11, width + 5 - x); ++i) {
        rows[y * width + x] += taps[i] * plane[y * width + x + i - 5];
      }
    }
  }
  for (int y = 0; y < height; ++y) {
    for (int i = std::max(0, 5 - y); i < std::min(11, height + 5 - y); ++i) {
      for (int x = 0; x < width; ++x) {
        out[y * width + x] += taps[i] * rows[(y + i - 5) * width + x];
      }
    }
  }
  return out;
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] * b[i];
  return out;
}

// The SSIM map of two planes.
std::vector<double> ssim_map(const std::vector<double>& a, const std::vector<double>& b, int width,
                             int height) {
  constexpr double kC1 = 1e-4, kC2 = 9e-4;
  const auto mean_a = blur(a, width, height), mean_b = blur(b, width, height);
  const auto aa = blur(product(a, a), width, height), bb = blur(product(b, b), width, height);
  const auto ab = blur(product(a, b), width, height);
  std::vector<double> out(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const double m1 = mean_a[i], m2 = mean_b[i];
    out[i] = (2 * m1 * m2 + kC1) * (2 * (ab[i] - m1 * m2) + kC2) /
             ((m1 * m1 + m2 * m2 + kC1) * (aa[i] - m1 * m1 + bb[i] - m2 * m2 + kC2));
  }
  return out;
}

template <class Cloud>
auto& select_group(Cloud& cloud, Group group) {
  switch (group) {
    case Group::Means:
      return cloud.means;
    case Group::LogScales:
      return cloud.log_scales;
    case Group::Rotations:
      return cloud.rotations;
    case Group::Opacities:
      return cloud.opacities;
    case Group::Sh0:
      return cloud.sh0;
    case Group::ShRest:
      break;
  }
  return cloud.sh_rest;
}

}  // namespace

OracleCloud::OracleCloud(const GaussianCloud& cloud)
    : sh_degree(cloud.sh_degree),
      means(cloud.means.begin(), cloud.means.end()),
      log_scales(cloud.log_scales.begin(), cloud.log_scales.end()),
      rotations(cloud.rotations.begin(), cloud.rotations.end()),
      opacities(cloud.opacities.begin(), cloud.opacities.end()),
      sh0(cloud.sh0.begin(), cloud.sh0.end()),
      sh_rest(cloud.sh_rest.begin(), cloud.sh_rest.end()) {}

const char* to_string(Group group) {
  constexpr const char* kNames[] = {"means",     "log_scales", "rotations",
                                    "opacities", "sh0",        "sh_rest"};
  return kNames[static_cast<int>(group)];
}

std::vector<double>& group_of(OracleCloud& cloud, Group group) {
  return select_group(cloud, group);
}
std::vector<float>& group_of(GaussianCloud& cloud, Group group) {
  return select_group(cloud, group);
}

std::array<double, 16> oracle_sh_basis(double x, double y, double z) {
  const double xx = x * x, yy = y * y, zz = z * z;
  return {0.28209479177387814,
          -0.48860251190291987 * y,
          0.48860251190291987 * z,
          -0.48860251190291987 * x,
          1.0925484305920792 * x * y,
          -1.0925484305920792 * y * z,
          0.94617469575755997 * zz - 0.31539156525251999,
          -1.0925484305920792 * x * z,
          0.54627421529603959 * (xx - yy),
          0.59004358992664352 * y * (yy - 3 * xx),
          2.8906114426405538 * x * y * z,
          0.45704579946446572 * y * (1 - 5 * zz),
          0.3731763325901154 * z * (5 * zz - 3),
          0.45704579946446572 * x * (1 - 5 * zz),
          1.4453057213202769 * z * (xx - yy),
          0.59004358992664352 * x * (3 * yy - xx)};
}

std::vector<double> oracle_compensation(const OracleCloud& cloud, const Camera& camera,
                                        double near_plane) {
  std::vector<double> out(cloud.count(), 1);
  for (size_t row = 0; row < cloud.count(); ++row) {
    Splat splat;
    if (project(cloud, row, camera, 0, near_plane, {true}, splat)) out[row] = splat.compensation;
  }
  return out;
}

OracleFrame oracle_render(const OracleCloud& cloud, const Camera& camera, int active_sh_degree,
                          const std::array<double, 3>& background, double near_plane,
                          const OracleMip& mip) {
  std::vector<Splat> splats;
  for (size_t row = 0; row < cloud.count(); ++row) {
    Splat splat;
    if (project(cloud, row, camera, active_sh_degree, near_plane, mip, splat)) {
      splats.push_back(splat);
    }
  }
  std::stable_sort(splats.begin(), splats.end(),
                   [](const Splat& a, const Splat& b) { return a.depth < b.depth; });

  OracleFrame frame;
  frame.width = static_cast<int>(camera.width);
  frame.height = static_cast<int>(camera.height);
  const size_t pixels = size_t{camera.width} * camera.height;
  frame.image.resize(3 * pixels);
  frame.alpha.resize(pixels);
  frame.depth.resize(pixels);
  frame.margin.resize(pixels, 1.0);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    const double px = static_cast<double>(pixel % camera.width) + 0.5;
    const double py = static_cast<double>(pixel / camera.width) + 0.5;
    double transmittance = 1, depth = 0, margin = 1;
    Vector3 color = {0, 0, 0};
    for (const Splat& splat : splats) {
      const double dx = splat.x - px, dy = splat.y - py;
      const double power = 0.5 * (splat.a * dx * dx + splat.c * dy * dy) + splat.b * dx * dy;
      // Beyond ln 255 = 5.54 no opacity reaches 1/255; this only saves time.
      if (power < 0 || power > 5.6) continue;
      const double alpha = std::min(splat.opacity * std::exp(-power), kMaxAlpha);
      margin = std::min(margin, std::abs(alpha / kMinAlpha - 1));
      if (alpha < kMinAlpha) continue;
      const double weight = transmittance * alpha;
      for (int channel = 0; channel < 3; ++channel) color[channel] += weight * splat.color[channel];
      depth += weight * splat.depth;
      transmittance *= 1 - alpha;
      margin = std::min(margin, std::abs(transmittance / kMinTransmittance - 1));
      if (transmittance < kMinTransmittance) break;
    }
    for (int channel = 0; channel < 3; ++channel) {
      frame.image[channel * pixels + pixel] = color[channel] + transmittance * background[channel];
    }
    frame.alpha[pixel] = 1 - transmittance;
    frame.depth[pixel] = depth;
    frame.margin[pixel] = margin;
  }
  return frame;
}

double oracle_loss(const OracleFrame& frame, const std::vector<uint8_t>& target,
                   double ssim_weight) {
  const int width = frame.width, height = frame.height;
  const int border = width > 10 && height > 10 ? 5 : 0;
  const size_t pixels = size_t(width) * height;
  double total = 0;
  for (int channel = 0; channel < 3; ++channel) {
    const std::vector<double> image(frame.image.begin() + channel * pixels,
                                    frame.image.begin() + (channel + 1) * pixels);
    std::vector<double> wanted(pixels);
    for (size_t i = 0; i < pixels; ++i) wanted[i] = target[channel * pixels + i] / 255.0;
    const auto ssim = ssim_map(image, wanted, width, height);
    for (int y = border; y < height - border; ++y) {
      for (int x = border; x < width - border; ++x) {
        const size_t i = size_t(y) * width + x;
        total += (1 - ssim_weight) * std::abs(image[i] - wanted[i]) + ssim_weight * (1 - ssim[i]);
      }
    }
  }
  return total / (3.0 * (width - 2 * border) * (height - 2 * border));
}

double oracle_regularisers(const OracleCloud& cloud, const OracleStep& step) {
  const double rows = static_cast<double>(cloud.count());
  double opacity = 0, scale = 0, rank = 0, base = 0, rest = 0;
  for (double raw : cloud.opacities) opacity += sigmoid(raw);
  for (double raw : cloud.log_scales) scale += std::exp(raw);
  for (size_t row = 0; row < cloud.count(); ++row) {
    double square[3], total = 0, entropy = 0;
    for (int k = 0; k < 3; ++k) total += square[k] = std::exp(2 * cloud.log_scales[3 * row + k]);
    for (const double s2 : square) entropy -= s2 / total * std::log(s2 / total);
    rank += std::max(0.0, -std::log(std::exp(entropy) - 1 + 1e-5));
  }
  for (double value : cloud.sh0) {
    base += std::pow(std::max(0.0, std::abs(value) - 0.5 / 0.28209479177387814), 2) / 3;
  }
  for (double value : cloud.sh_rest) rest += value * value;
  if (!cloud.sh_rest.empty()) rest /= static_cast<double>(cloud.sh_rest.size());
  return step.opacity_reg * opacity / rows + step.scale_reg * scale / (3 * rows) +
         step.erank_reg * rank / rows + step.dc_reg * base + step.sh_rest_reg * rest;
}

double oracle_step_loss(const OracleCloud& cloud, const Camera& camera,
                        const std::vector<uint8_t>& target, const OracleStep& step) {
  const OracleFrame frame = oracle_render(cloud, camera, step.active_sh_degree, step.background,
                                          step.near_plane, {step.mip_filter});
  return oracle_loss(frame, target, step.ssim_weight) + oracle_regularisers(cloud, step);
}

bool Difference::smooth(double tolerance) const {
  return std::abs(full - half) <= tolerance && bend_half <= 0.75 * bend_full + tolerance;
}

std::vector<Difference> central_differences(OracleCloud& cloud, Group group, size_t entry,
                                            double step, const Functionals& functionals) {
  double& value = group_of(cloud, group)[entry];
  const double saved = value;
  const auto at = [&](double offset) {
    value = saved + offset;
    const auto result = functionals(cloud);
    value = saved;
    return result;
  };
  const auto centre = at(0);
  const auto ahead = at(step), behind = at(-step);
  const auto ahead_half = at(step / 2), behind_half = at(-step / 2);
  std::vector<Difference> out(centre.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].full = (ahead[i] - behind[i]) / (2 * step);
    out[i].half = (ahead_half[i] - behind_half[i]) / step;
    out[i].bend_full = std::abs(ahead[i] - 2 * centre[i] + behind[i]) / step;
    out[i].bend_half = std::abs(ahead_half[i] - 2 * centre[i] + behind_half[i]) / (step / 2);
  }
  return out;
}

}  // namespace millrace::test
