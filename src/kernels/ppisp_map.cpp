// PPISP's homography and response curve from their latents, with gradients in double precision.
#include "kernels/ppisp_map.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace millrace::kernels {
namespace {

using Vec3 = std::array<double, 3>;

// Latents to offsets of the chromaticities of blue, red, green and neutral (symmetric 2x2).
constexpr double kZca[4][3] = {{0.0480542, -0.0043631, 0.0481283},
                               {0.0580570, -0.0179872, 0.0431061},
                               {0.0433336, -0.0180537, 0.0580500},
                               {0.0128369, -0.0034654, 0.0128158}};
constexpr double kTargets[4][2] = {{0, 0}, {1, 0}, {0, 1}, {1.0 / 3, 1.0 / 3}};
constexpr double kSmallestWeight = 1e-6;
constexpr double kLargestRaw = 32;
constexpr double kCentreMargin = 1e-4;

Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/// Targets t of blue, red, green and neutral, and the weights w with w0 tb + w1 tr + w2 tg ~ tn by
/// Cramer's rule.
struct Chroma {
  Vec3 t[4];
  double w[3];
};

Chroma chroma_of(const float* latents) {
  Chroma c;
  for (int k = 0; k < 4; ++k) {
    const double x = latents[2 * k], y = latents[2 * k + 1];
    c.t[k] = {kTargets[k][0] + kZca[k][0] * x + kZca[k][1] * y,
              kTargets[k][1] + kZca[k][1] * x + kZca[k][2] * y, 1};
  }
  c.w[0] = dot(c.t[3], cross(c.t[1], c.t[2]));
  c.w[1] = dot(c.t[0], cross(c.t[3], c.t[2]));
  c.w[2] = dot(c.t[0], cross(c.t[1], c.t[3]));
  if (std::abs(c.w[0]) < kSmallestWeight) c.w[0] = kSmallestWeight;
  return c;
}

// d_latents from the gradients of the homography's eight entries.
void homography_backward(const float* latents, const double* d_h, float* d_latents) {
  const Chroma c = chroma_of(latents);
  const double a = c.w[1] / c.w[0], b = c.w[2] / c.w[0];
  // Columns: a tr - tb, b tg - tb, tb.
  Vec3 d_t[4] = {};
  double d_a = 0, d_b = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double d0 = d_h[3 * i], d1 = d_h[3 * i + 1], d2 = i < 2 ? d_h[3 * i + 2] : 0;
    d_a += d0 * c.t[1][i];
    d_b += d1 * c.t[2][i];
    d_t[0][i] += d2 - d0 - d1;
    d_t[1][i] += a * d0;
    d_t[2][i] += b * d1;
  }
  const double d_w[3] = {-(d_a * a + d_b * b) / c.w[0], d_a / c.w[0], d_b / c.w[0]};
  // Each weight is a determinant: its gradient by one column is the cross product of the others.
  const auto add = [&](int column, double scale, const Vec3& gradient) {
    for (size_t i = 0; i < 3; ++i) d_t[column][i] += scale * gradient[i];
  };
  const auto determinant = [&](double scale, int u, int v, int w) {
    add(u, scale, cross(c.t[v], c.t[w]));
    add(v, scale, cross(c.t[w], c.t[u]));
    add(w, scale, cross(c.t[u], c.t[v]));
  };
  determinant(d_w[0], 3, 1, 2);
  determinant(d_w[1], 0, 3, 2);
  determinant(d_w[2], 0, 1, 3);
  for (int k = 0; k < 4; ++k) {
    d_latents[2 * k] = static_cast<float>(kZca[k][0] * d_t[k][0] + kZca[k][1] * d_t[k][1]);
    d_latents[2 * k + 1] = static_cast<float>(kZca[k][1] * d_t[k][0] + kZca[k][2] * d_t[k][1]);
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) {
  x = std::min(x, kLargestRaw);
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
double d_softplus(double x) { return x < kLargestRaw ? sigmoid(x) : 0; }

/// One channel's response: y = gain (x/centre)^toe up to the centre, 1 - (1 - gain)
/// ((1-x)/(1-centre))^shoulder beyond; the output is y^gamma.
struct Response {
  double gain, toe, shoulder, gamma, centre;
};
Response response_of(const float* raw) {
  Response r;
  r.toe = 0.3 + softplus(raw[0]);
  r.shoulder = 0.3 + softplus(raw[1]);
  r.gamma = 0.1 + softplus(raw[2]);
  r.centre = std::clamp(sigmoid(raw[3]), kCentreMargin, 1 - kCentreMargin);
  r.gain = r.shoulder * r.centre / (r.toe + (r.shoulder - r.toe) * r.centre);
  return r;
}

// sums: of gain, toe, shoulder, gamma, centre.
void response_backward(const float* raw, const double* sums, float* d_raw) {
  const Response r = response_of(raw);
  const double under = r.toe + (r.shoulder - r.toe) * r.centre;
  const double d_under = -sums[0] * r.gain / under;
  const double d_toe = sums[1] + d_under * (1 - r.centre);
  const double d_shoulder = sums[2] + sums[0] * r.centre / under + d_under * r.centre;
  const double d_centre = sums[4] + sums[0] * r.shoulder / under + d_under * (r.shoulder - r.toe);
  const double s = sigmoid(raw[3]);
  const bool inside = s > kCentreMargin && s < 1 - kCentreMargin;
  d_raw[0] = static_cast<float>(d_toe * d_softplus(raw[0]));
  d_raw[1] = static_cast<float>(d_shoulder * d_softplus(raw[1]));
  d_raw[2] = static_cast<float>(sums[3] * d_softplus(raw[2]));
  d_raw[3] = static_cast<float>(inside ? d_centre * s * (1 - s) : 0);
}

}  // namespace

void ppisp_homography(const float* latents, float* homography) {
  const Chroma c = chroma_of(latents);
  const double a = c.w[1] / c.w[0], b = c.w[2] / c.w[0];
  for (size_t i = 0; i < 3; ++i) {
    homography[3 * i] = static_cast<float>(a * c.t[1][i] - c.t[0][i]);
    homography[3 * i + 1] = static_cast<float>(b * c.t[2][i] - c.t[0][i]);
    homography[3 * i + 2] = static_cast<float>(c.t[0][i]);
  }
}

PpispMap ppisp_map_of(const PpispParams& params, const StepBlock& step, const float* values) {
  const AppearanceStep& at = step.appearance;
  PpispMap map;
  map.gain = static_cast<float>(std::exp2(std::clamp<double>(values[at.frame], -16, 16)));
  ppisp_homography(values + ppisp_colour_at(params, at.frame), map.homography);
  const float* vignetting = values + ppisp_vignetting_at(params, at.camera);
  std::copy(vignetting, vignetting + kPpispVignetting, &map.vignetting[0][0]);
  map.has_response = (at.modes & kAppearanceCrf) != 0;
  for (uint32_t c = 0; c < 3; ++c) {
    const Response r = response_of(values + ppisp_crf_at(params, at.camera) + 4 * c);
    const double fields[5] = {r.gain, r.toe, r.shoulder, r.gamma, r.centre};
    for (int k = 0; k < 5; ++k) map.response[c][k] = static_cast<float>(fields[k]);
  }
  return map;
}

void ppisp_parameter_gradients(const PpispParams& params, const StepBlock& step,
                               const float* values, const double* sums, float* gradients) {
  const AppearanceStep& at = step.appearance;
  gradients[0] = static_cast<float>(sums[0] * 0.69314718055994531);
  homography_backward(values + ppisp_colour_at(params, at.frame), sums + 1 + kPpispVignetting,
                      gradients + 1);
  float* d_vignetting = gradients + 1 + kPpispColour;
  for (uint32_t k = 0; k < kPpispVignetting; ++k) d_vignetting[k] = static_cast<float>(sums[1 + k]);
  float* d_crf = d_vignetting + kPpispVignetting;
  std::fill(d_crf, d_crf + kPpispCrf, 0.0f);
  if ((at.modes & kAppearanceCrf) == 0) return;
  for (uint32_t c = 0; c < 3; ++c) {
    response_backward(values + ppisp_crf_at(params, at.camera) + 4 * c,
                      sums + 1 + kPpispVignetting + 8 + 5 * c, d_crf + 4 * c);
  }
}

}  // namespace millrace::kernels
